"""Measures what adoption costs: importing it, choosing a kernel, a whole call; on a GPU also plans under graphs.

    python benchmarks/adopt.py [--wrong-use 100000] [--refreshes 1000]

Times are the least of several repetitions, since a busy machine only adds to them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from forge.adopt import adopt
from tests.adopt.making import RMSNORM, cpp_kernel, kernel, publish
from tests.adopt.random_calls import NOTING, run

IMPORTS = 7
REPEATS, CALLS = 7, 20_000
EPS = 1e-6


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
            key, kept = operation._host_key, operation._choices.by_key
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
    publish(folder, [kernel("rmsnorm", NOTING)])
    from forge.domain.digest import sha256

    with adopt(folder, trust="promoted", refresh_s=0):
        outcome = run(calls, seed=1)
    outside = len(sys.modules[f"forge_promoted_{sha256(NOTING.encode())}"].WRONG)
    return {
        "random calls": outcome.calls,
        "kernel outside its evidence": outside,
        "wrong answers": len(outcome.wrong),
    }


def refreshes(folder: Path, count: int) -> dict[str, object]:
    """Publish, withdraw and damage while eight threads call; return what went wrong."""
    from tests.adopt.publishing import calling_while_publishing

    return calling_while_publishing(folder, count=count, threads=8)


def on_the_gpu(folder: Path) -> dict[str, object]:
    """Return host times of a plan, its first call, and graph replays beside the raw plan's."""
    from tests.gpu.shipped import publish_alone
    from tests.gpu.test_adopt import ONE_EACH, here, operands

    figures: dict[str, object] = {"device": torch.cuda.get_device_name(0)}
    for shipped in ONE_EACH:
        root = publish_alone(folder / shipped.kernel_id, shipped.kernel_id, gpu=here())
        with adopt(root, trust="promoted", refresh_s=0, backends=("plan",)) as ops, torch.inference_mode():
            arguments = operands(shipped)
            call = getattr(torch.ops.forge, shipped.op).default
            torch.cuda.synchronize()
            begun = time.perf_counter()
            call(*arguments)
            torch.cuda.synchronize()
            figures[f"{shipped.op}: first call ms"] = round((time.perf_counter() - begun) * 1e3, 3)
            figures[f"{shipped.op}: took"] = [line["backend"] for line in ops.report().lines]
            figures[f"{shipped.op}: host us"] = round(host_us(lambda c=call, a=arguments: c(*a)), 2)
            (plan,) = ops._decider._loaded.values()
            inner = plan._plan
            tensors, outputs, workspaces = arguments[: plan._count], inner.outputs(), inner.workspaces()
            raw = graph_us(lambda p=inner, t=tensors, o=outputs, w=workspaces: p.launch(t, o, w))
            adopted = graph_us(lambda c=call, a=arguments: c(*a))
            figures[f"{shipped.op}: graph us, adopted over raw plan"] = [
                round(adopted, 3),
                round(raw, 3),
                round(adopted / raw, 4),
            ]
    return figures


def host_us(call: Callable[..., object], calls: int = 2000) -> float:
    """Return the host's time of a call while the GPU keeps up with batches of 100, in microseconds."""
    best = float("inf")
    for _ in range(calls // 100):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(100):
            call()
        best = min(best, (time.perf_counter() - begun) / 100)
    return best * 1e6


def graph_us(call: Callable[..., object], launches: int = 50, replays: int = 20) -> float:
    """Return the GPU's time of one call in a captured graph of many, the least of several replays."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            call()
    best = float("inf")
    for _ in range(replays):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) * 1e3 / launches)
    return best


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--wrong-use", type=int, default=0)
    parser.add_argument("--refreshes", type=int, default=0)
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
        if torch.cuda.is_available():
            figures |= on_the_gpu(folder / "d")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
