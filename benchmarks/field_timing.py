"""Times a kernel against itself the way the field does, in one process: python benchmarks/field_timing.py 16x4096.

Two protocols, both around the function's own calls on one set of inputs. `events`: CUDA events around each of 100
calls, the last-level cache overwritten before each, the mean of them, as KernelBench's timing.py does at 423217d.
`do_bench`: triton.testing.do_bench with its defaults, whose answer is a mean as well. Prints JSON: for each shape and
protocol the ratio of the first measurement to the second, trial after trial.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

KERNEL = Path(__file__).resolve().parent.parent / "examples" / "h200" / "fused_add_rmsnorm" / "kernel.py"
CALLS = 100
WARM_UP_CALLS = 3
FLUSHED_BYTES = 256 * 2**20
EPS = 1e-6

Operands = tuple["torch.Tensor | float", ...]
Clock = Callable[[Callable[..., object], Operands], float]
"""Takes a function and its operands, and says how many milliseconds a call takes."""


def by_events(function: Callable[..., object], operands: Operands) -> float:
    """The mean of 100 calls, each between two events and behind an overwritten cache."""
    import torch

    for _ in range(WARM_UP_CALLS):
        function(*operands)
    torch.cuda.synchronize()
    taken = []
    for _ in range(CALLS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        flushing = torch.empty(FLUSHED_BYTES // 8, dtype=torch.int64, device="cuda")
        flushing.fill_(42)
        del flushing
        start.record()
        function(*operands)
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end))
    return statistics.fmean(taken)


def by_do_bench(function: Callable[..., object], operands: Operands) -> float:
    """What Triton's own helper says."""
    import triton.testing

    return float(triton.testing.do_bench(lambda: function(*operands)))


CLOCKS: dict[str, Clock] = {"events": by_events, "do_bench": by_do_bench}


def compare(
    clock: Clock, function: Callable[..., object], operands: Operands, *, trials: int, limit_s: float
) -> dict:  # type: ignore[type-arg]  # JSON
    """Time the function twice in each trial; as many trials as are wanted, or as fit into the time."""
    began_s = time.monotonic()
    ratios: list[float] = []
    first_us: list[float] = []
    clock(function, operands)
    while len(ratios) < trials and time.monotonic() - began_s < limit_s:
        baseline_ms, candidate_ms = clock(function, operands), clock(function, operands)
        ratios.append(baseline_ms / candidate_ms)
        first_us.append(baseline_ms * 1000)
    return {"ratios": ratios, "median_us": statistics.median(first_us)}


def main() -> None:
    import torch

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("shapes", nargs="+", help="rows x width, for example 16x4096")
    options.add_argument("--trials", type=int, default=100)
    options.add_argument("--limit-s", type=float, default=20.0, help="for each shape and protocol")
    asked = options.parse_args()
    if not torch.cuda.is_available():
        print("this machine has no GPU that torch can use", file=sys.stderr)
        sys.exit(3)
    spec = importlib.util.spec_from_file_location("kernel", KERNEL)
    assert spec is not None
    assert spec.loader is not None
    kernel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernel)
    answer = []
    for shape in asked.shapes:
        rows, width = map(int, shape.split("x"))
        sizes = ((rows, width), (rows, width), (width,))
        tensors = tuple(torch.randn(size, dtype=torch.float16, device="cuda") for size in sizes)
        for name, clock in CLOCKS.items():
            operands = (*tensors, EPS)
            found = compare(clock, kernel.fused_add_rmsnorm, operands, trials=asked.trials, limit_s=asked.limit_s)
            answer.append({"shape": shape, "method": name, **found})
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
