"""What Forge's GPU clock is worth: python benchmarks/measurement.py --json > found.json, on a machine with a GPU.

One kernel, examples/h200/fused_add_rmsnorm in fp16, at shapes of about 2, 5 and 35 us. Parts:

a  the same kernel as candidate and as baseline, by Forge's rule and by two protocols of the field (field_timing.py);
   Forge's rule in the resident regime too, where a call's operands fit into half of the cache
b  how wide the interval is, and how many seconds of the GPU it took, by number of rounds
c  the launcher's time against graph replay of the kernel's own calls
d  from submission to decision: seconds of the first and of a later candidate of one process
e  what a plain copy reaches of the floor, by its size

Processes of a and b are drawn from a pool of fresh launchers, since starting one costs more than a trial: each trial
takes disjoint pairs at random and times them anew. benchmarks/measurement_page.py writes the page.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from replaying import Bench, bench, job_for, own_calls

from forge.domain.device import Device
from forge.errors import EnvironmentUnfit, ForgeError
from forge.executor.turns import lock_of, turn
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.trusted import prepare
from forge.lab.timing.paired_interval import interval, pair_ratios
from forge.lab.timing.residency import Residence
from forge.platforms.nvml import sample

HERE = Path(__file__).resolve().parent
WINNER = HERE.parent / "examples" / "h200" / "softmax"
"""What part d submits: it meets the rule, so that its way is the longest, with a confirmation."""
SHAPES = ("16x4096", "256x4096", "4096x4096")
PAIRS = 5
ROUNDS = 4
WIDTH_ROUNDS = (1, 2, 4, 8, 16, 24)
WIDTH_DRAWS = 3
BUSY_EVERY_S = 0.1

Json = dict[str, Any]  # Any: a JSON document


def against_itself(
    one: Bench, left: list[LoadedKernel], right: list[LoadedKernel], *, trials: int, limit_s: float
) -> Json:
    """Part a: trials of the whole rule, with the same plan on both sides."""
    began_s, began_ns = time.monotonic(), one.device_ns
    found: list[list[float]] = []
    while len(found) < trials and time.monotonic() - began_s < limit_s:
        pairs = one.rng.sample(left, PAIRS), one.rng.sample(right, PAIRS)
        baseline, candidate = one.paired(*pairs, ROUNDS)
        ratios = pair_ratios(baseline, candidate)
        over = interval(ratios)
        found.append([over.ratio, over.low, over.high, sum(ratio <= 0 for ratio in ratios)])
    gpu_s = (one.device_ns - began_ns) / 1e9
    took_s = time.monotonic() - began_s
    us = one.per_call_us(baseline)
    return {"trials": found, "median_us": us, "gpu_s": gpu_s, "wall_s": took_s}


def widths(one: Bench, left: list[LoadedKernel], right: list[LoadedKernel]) -> list[Json]:
    """Part b: half the interval's width with the first so many rounds of each pair."""
    rows: dict[int, list[tuple[float, float]]] = {rounds: [] for rounds in WIDTH_ROUNDS}
    for _ in range(WIDTH_DRAWS):
        baseline, candidate = one.paired(one.rng.sample(left, PAIRS), one.rng.sample(right, PAIRS), max(WIDTH_ROUNDS))
        for rounds, drawn in rows.items():
            first = [pair[:rounds] for pair in baseline], [pair[:rounds] for pair in candidate]
            over = interval(pair_ratios(*first))
            gpu_s = sum(sum(pair) for side in first for pair in side) / 1e9
            drawn.append(((over.high - over.low) / 2 / over.ratio, gpu_s))
    return [
        {
            "rounds": rounds,
            "half_width": statistics.median(half for half, _ in drawn),
            "half_widths": [half for half, _ in drawn],
            "gpu_s": statistics.median(gpu_s for _, gpu_s in drawn),
        }
        for rounds, drawn in rows.items()
    ]


def launcher_against_calls(one: Bench, launchers: list[LoadedKernel]) -> Json:
    """Part c: the same kernel launched from its plan, and its own calls replayed in their process."""
    calls = one.open(lambda: own_calls(one.job), PAIRS)
    own, launcher = one.paired(calls, launchers[:PAIRS], max(WIDTH_ROUNDS))
    over = interval(pair_ratios(launcher, own))
    return {
        "launcher_us": one.per_call_us(launcher),
        "own_calls_us": one.per_call_us(own),
        "ratio": over.ratio,
        "low": over.low,
        "high": over.high,
    }


def at_shape(shape: str, device: Device, asked: argparse.Namespace) -> Json:
    """Parts a, b and c at one shape."""
    answer: Json = {"shape": shape}
    began_s, before = time.monotonic(), sample(device)
    with bench(shape, device) as (one, start):
        pool = asked.pool if {"a", "b"} & set(asked.only) else PAIRS
        left = one.open(start, pool)
        right = one.open(start, pool) if {"a", "b"} & set(asked.only) else []
        answer |= {"sets": len(one.cases), "opening_s": time.monotonic() - began_s}
        if "a" in asked.only:
            answer["forge"] = against_itself(one, left, right, trials=asked.trials, limit_s=asked.limit_s)
        if "b" in asked.only:
            answer["widths"] = widths(one, left, right)
        if "c" in asked.only:
            answer["launcher"] = launcher_against_calls(one, left)
        in_cache = resident_sets(one)
        if "a" in asked.only and in_cache:
            one.make_resident([*left, *right], in_cache)
            answer["forge_resident"] = against_itself(one, left, right, trials=asked.trials, limit_s=asked.limit_s)
    states = [state.model_dump(mode="json") for state in (before, sample(device)) if state is not None]
    return {**answer, "states": states}


def resident_sets(one: Bench) -> int:
    """How many operand sets half of the cache holds; 0 if a call's own operands don't fit."""
    import torch

    set_bytes = one.job.operation.bytes_moved(one.job.shape, one.job.dtype)
    return Residence(torch.cuda.get_device_properties(0).L2_cache_size, set_bytes).sets


def field_trials(shapes: list[str], device: Device, asked: argparse.Namespace) -> list[Json]:
    """The field's protocols, in a process of their own with nothing around it."""
    command = [sys.executable, str(HERE / "field_timing.py"), *shapes]
    command += ["--trials", str(asked.trials), "--limit-s", str(asked.limit_s)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": device.uuid}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if ended.returncode != 0:
        raise EnvironmentUnfit(f"field_timing.py ended with {ended.returncode}: {ended.stderr[-800:]}")
    found: list[Json] = json.loads(ended.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="abcde", help="which parts, for example ab")
    options.add_argument("--shapes", default=",".join(SHAPES), help="rows x width, with commas between")
    options.add_argument("--trials", type=int, default=100, help="of part a, for each shape and method")
    options.add_argument(
        "--limit-s", type=float, default=8.0, help="most seconds for each shape and method of part a"
    )
    options.add_argument("--pool", type=int, default=10, help="launchers of each side")
    options.add_argument("--json", action="store_true", help="print JSON alone; without it, indented")
    asked = options.parse_args()
    if not asked.only or set(asked.only) - set("abcde") or asked.pool < PAIRS or asked.trials < 1:
        options.error(f"--only takes letters of abcde, --pool at least {PAIRS}, --trials at least 1")
    try:
        answer = measured(asked)
    except ForgeError as error:
        print(f"{error.code}: {error.message}", file=sys.stderr)
        sys.exit(error.exit_status)
    print(json.dumps(answer, indent=None if asked.json else 2))


def measured(asked: argparse.Namespace) -> Json:
    """Everything that was asked for, with what it was measured on; raise EnvironmentUnfit."""
    from forge.app.machine.chosen_device import chosen_device

    device = chosen_device()
    if device is None:
        raise EnvironmentUnfit("this machine has no NVIDIA GPU: the GPU's clock can't be measured here")
    import torch
    import triton

    from forge.platforms.cuda import gpu_facts

    facts = gpu_facts(device.uuid)
    answer: Json = {
        "machine": {
            "gpu": facts.name if facts else "not reported",
            "cuda": torch.version.cuda,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "python": platform.python_version(),
        },
        "pairs": PAIRS,
        "rounds": ROUNDS,
        "pool": asked.pool,
    }
    if "d" in asked.only:
        from measurement_cost import costs

        answer["cost"] = costs(WINNER, device, every_s=BUSY_EVERY_S)
    if "e" in asked.only:
        from copying import copies

        from forge.executor.local import LocalExecutor

        ceilings = LocalExecutor(lock_of(device), device=device).calibrate()
        with turn(lock_of(device), alone=True, progress=lambda said: print(said, file=sys.stderr)):
            answer["copies"] = copies(ceilings)
        torch.cuda.empty_cache()
    if set(asked.only) - {"d", "e"}:
        prepare(job_for(SHAPES[0], device))
        with turn(lock_of(device), alone=True, progress=lambda said: print(said, file=sys.stderr)):
            shapes = asked.shapes.split(",")
            if "a" in asked.only:
                answer["field"] = field_trials(shapes, device, asked)
            answer["shapes"] = [at_shape(shape, device, asked) for shape in shapes]
    return answer


if __name__ == "__main__":
    main()
