"""Measures what adoption costs: importing it, choosing a kernel, a whole call.

Launch plans are measured by `benchmarks/adopt_gpu.py`.

    python benchmarks/adopt.py [--wrong-use 100000] [--refreshes 1000] [--compiled 21]

Times are the least of several repetitions, since a busy machine only adds to them. `--compiled` compares compiled
models in pairs of windows that take turns, by processor time: what adoption costs where the registry has no kernel
for the device.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from forge.adopt import adopt
from forge.adopt.advice import median_interval
from forge.guest.load import load_module
from tests.adopt.making import RMSNORM, cpp_kernel, kernel, publish
from tests.adopt.random_calls import NOTING, OF_ANOTHER_DEVICE, of_other_devices, run

IMPORTS = 7
REPEATS, CALLS = 7, 20_000
EPS = 1e-6
LLAMA_OPERATIONS = ["fused_add_rmsnorm", "rmsnorm", "rope"]
LLAMA = {
    "dtype": "fp32", "vocab": 512, "hidden": 512, "layers": 4, "heads": 8, "kv_heads": 4, "mlp": 1024, "eps": EPS,
    "theta": 500000.0,
}  # fmt: skip
LLAMA_STEPS = {
    "decode": {"batch": 16, "tokens": 1, "context": 64, "steps": 16},
    "prefill": {"batch": 1, "tokens": 512, "context": 0, "steps": 2},
}
"""Workload -> the step, and the number of steps in a window: about 0.1 s on two cores."""


def import_ms() -> float:
    """Return the least processor time of importing adopt after torch, in a new process."""
    said = "import torch, time; b = time.process_time(); import forge.adopt; print((time.process_time() - b) * 1e3)"
    found = [
        subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
        for _ in range(IMPORTS)
    ]
    return min(float(one.stdout) for one in found)


def least_ns(call: Callable[..., object], calls: int = CALLS) -> float:
    """Return the least mean time of a call, in nanoseconds."""
    return min(timeit.repeat(call, number=calls, repeat=REPEATS)) / calls * 1e9


def on_the_processor(folder: Path) -> dict[str, float]:
    """Return the times of choosing and of whole calls with C++ and with the fallback."""
    publish(folder, [cpp_kernel(), kernel("rmsnorm", RMSNORM)])
    x, weight = torch.randn(4, 64), torch.randn(64)
    figures = {}
    with adopt(folder, trust="promoted", refresh_s=0) as ops, torch.no_grad():
        for op, arguments in (("fused_add_rmsnorm", (x, x, weight, EPS)), ("rmsnorm", (x, weight, EPS))):
            operation = ops.operations[op]
            getattr(torch.ops.forge, op)(*arguments)
            key, kept = operation._key, operation._choices.by_key
            figures[f"{op}: choice and guards ns"] = least_ns(lambda k=key, c=kept, a=arguments: c.get(k(*a)))
            figures[f"{op}: adopted call ns"] = least_ns(
                lambda o=op, a=arguments: getattr(torch.ops.forge, o)(*a), 5000
            )
            figures[f"{op}: reference ns"] = least_ns(lambda f=operation.fallback, a=arguments: f(*a), 2000)
        with torch.inference_mode():
            inner = torch.ops.forge.rmsnorm.default
            own = x.clone(), weight.clone(), EPS
            figures["rmsnorm: adopted call in inference mode ns"] = least_ns(lambda: inner(*own), 5000)
    return figures


def wrong_use(folder: Path, calls: int) -> dict[str, object]:
    """Make random calls over the guards; return how many were a wrong use."""
    publish(folder, [kernel("rmsnorm", NOTING), *of_other_devices()])
    from forge.domain.digest import sha256

    with adopt(folder, trust="promoted", refresh_s=0):
        outcome = run(calls, seed=1)
    outside = len(sys.modules[f"forge_promoted_{sha256(NOTING.encode())}"].WRONG)
    outside += f"forge_promoted_{sha256(OF_ANOTHER_DEVICE.encode())}" in sys.modules
    return {
        "random calls": outcome.calls,
        "kernel outside its evidence": outside,
        "wrong answers": len(outcome.wrong),
    }


def refreshes(folder: Path, count: int) -> dict[str, object]:
    """Publish, withdraw and damage while eight threads call; return what went wrong."""
    from tests.adopt.publishing import calling_while_publishing

    return calling_while_publishing(folder, count=count, threads=8)


def compiled(folder: Path, pairs: int) -> dict[str, list[float]]:
    """Return how fast a compiled Llama is beside one with its own functions: the median ratio and its interval.

    Every kernel of the registry is for a GPU. `opaque`: the model calls `torch.ops.forge`. `kept`: it calls what
    `Adopted.function` returns. `control`: its own functions once more.
    """
    publish(folder, [kernel(op, RMSNORM, gpu="h200") for op in LLAMA_OPERATIONS])
    llama = load_module(str(Path(__file__).with_name("models") / "llama_8b.py"), "llama_8b")
    own: dict[str, Callable[..., object]] = {}
    llama.build(llama.TINY, 0, own.setdefault)
    figures = {}
    with adopt(folder, LLAMA_OPERATIONS, trust="promoted", refresh_s=0, fallback=own) as ops, torch.no_grad():
        hooks = {
            "own": lambda _, function: function,
            "control": lambda _, function: function,
            "opaque": lambda op, _: getattr(torch.ops.forge, op),
            "kept": ops.function,
        }
        for name, workload in LLAMA_STEPS.items():
            torch._dynamo.reset()
            steps = {}
            for side, hook in hooks.items():
                model = llama.build(LLAMA, 0, hook)
                steps[side] = partial(
                    torch.compile(model), *llama.start(model, LLAMA, workload, 0), workload["context"]
                )
                steps[side]()
            logs: dict[str, list[float]] = {side: [] for side in hooks}
            for _ in range(pairs):
                for side in ("control", "opaque", "kept"):
                    order = random.sample(["own", side], 2)
                    took = {
                        one: timeit.timeit(steps[one], timer=process_time, number=workload["steps"]) for one in order
                    }
                    logs[side].append(math.log(took["own"] / took[side]))
            for side, found in logs.items():
                if found:
                    middle, ends = statistics.median(found), median_interval(found)
                    figures[f"llama {name}, compiled: {side} over own"] = [
                        round(math.exp(one), 4) for one in (middle, *ends)
                    ]
    return figures


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--wrong-use", type=int, default=0)
    parser.add_argument("--refreshes", type=int, default=0)
    parser.add_argument("--compiled", type=int, default=0)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    figures: dict[str, object] = {
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "cores": os.cpu_count(),
    }
    figures["import ms"] = round(import_ms(), 2)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        figures |= {name: round(value) for name, value in on_the_processor(folder / "a").items()}
        if chosen.wrong_use:
            figures |= wrong_use(folder / "b", chosen.wrong_use)
        if chosen.refreshes:
            figures |= refreshes(folder / "c", chosen.refreshes)
        if chosen.compiled:
            figures |= compiled(folder / "d", chosen.compiled)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
