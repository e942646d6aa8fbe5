"""Measures on a GPU what an adopted launch plan costs the host, part by part, and what it costs under graph replay.

    python benchmarks/adopt_gpu.py [--ops rmsnorm fused_add_rmsnorm]

A graph's time depends on where its memory lies. So each side is captured several times, in turn, and replayed in
turn; `raw again` compares the raw plan's captures with one another: it is the control.
"""

import argparse
import json
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from forge.adopt import Adopted, adopt
from tests.gpu.shipped import ShippedKernel, publish_alone
from tests.gpu.test_adopt import ONE_EACH, here, operands

CALLS_AT_ONCE = 100
"""Number of calls between two waits for the GPU: fewer than a stream's queue holds, so the host never waits."""
LAUNCHES, CAPTURES, REPLAYS = 50, 5, 20


def host_us(call: Callable[[], object], batches: int = 20) -> float:
    """Return the host's least mean time of a call, in microseconds."""
    best = float("inf")
    for _ in range(batches):
        torch.cuda.synchronize()
        best = min(best, timeit.timeit(call, number=CALLS_AT_ONCE) / CALLS_AT_ONCE)
    torch.cuda.synchronize()
    return round(best * 1e6, 2)


class Captured:
    """A graph of many calls."""

    def __init__(self, call: Callable[[], object]) -> None:
        call()
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(self._graph):
            for _ in range(LAUNCHES):
                call()
        self.nodes = _nodes(self._graph)
        self.times_us: list[float] = []

    def replay(self) -> None:
        """Replay, and keep the GPU's time of one call."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        self._graph.replay()
        end.record()
        torch.cuda.synchronize()
        self.times_us.append(begin.elapsed_time(end) * 1e3 / LAUNCHES)


def _nodes(graph: torch.cuda.CUDAGraph) -> int:
    """Return a captured graph's number of nodes."""
    from cuda.bindings import driver  # type: ignore[import-not-found]  # there only where a GPU is

    failed, _, count = driver.cuGraphGetNodes(graph.raw_cuda_graph())
    if int(failed):
        raise RuntimeError(f"the driver answered {failed}")
    return int(count)


def under_graphs(raw: Callable[[], object], adopted: Callable[[], object]) -> dict[str, object]:
    """Return the adopted call's time under graph replay over the raw plan's."""
    graphs = [(Captured(raw), Captured(adopted)) for _ in range(CAPTURES)]
    for _ in range(REPLAYS):
        for pair in graphs:
            for one in pair:
                one.replay()
    sides = [sorted(median(pair[side].times_us[2:]) for pair in graphs) for side in (0, 1)]
    return {
        "nodes of raw and adopted": [graphs[0][0].nodes, graphs[0][1].nodes],
        "raw us, each capture": [round(one, 3) for one in sides[0]],
        "adopted us, each capture": [round(one, 3) for one in sides[1]],
        "adopted over raw": round(median(sides[1]) / median(sides[0]), 4),
        "raw again over raw, at most": round(sides[0][-1] / sides[0][0], 4),
    }


def parts(ops: Adopted, op: str, arguments: Sequence[object]) -> dict[str, float]:
    """Return the host's time of each part of a call, in microseconds."""
    operation = ops.operations[op]
    (plan,) = ops._decider._loaded.values()
    inner, key, kept = plan._plan, operation._key, operation._choices.by_key
    tensors, outputs, workspaces = arguments[: plan._count], inner.outputs(), inner.workspaces()
    choice = kept[key(*arguments)]
    overload = getattr(torch.ops.forge, op).default
    return {
        "key and look-up": host_us(lambda: kept.get(key(*arguments))),
        "outputs": host_us(lambda: (inner.outputs(), inner.workspaces())),
        "launch": host_us(lambda: inner.launch(tensors, outputs, workspaces)),
        "plan": host_us(lambda: plan(*arguments)),
        "choice": host_us(lambda: choice(*arguments)),
        "function": host_us(lambda: operation.on_device(*arguments)),
        "call": host_us(lambda: overload(*arguments)),
        "packet": host_us(lambda: getattr(torch.ops.forge, op)(*arguments)),
        "empty of the operands' size by torch": host_us(lambda: torch.empty_like(arguments[0])),
    }


def measure(shipped: ShippedKernel, folder: Path) -> dict[str, object]:
    """Return all figures of one kernel."""
    root = publish_alone(folder / shipped.kernel_id, shipped.kernel_id, gpu=here())
    found: dict[str, object] = {"kernel": shipped.kernel_id}
    with adopt(root, trust="promoted", refresh_s=0, backends=("plan",)) as ops:
        arguments = operands(shipped)
        call = getattr(torch.ops.forge, shipped.op).default
        with torch.no_grad():
            torch.cuda.synchronize()
            begun = time.perf_counter()
            call(*arguments)
            torch.cuda.synchronize()
            found["first call ms"] = round((time.perf_counter() - begun) * 1e3, 3)
            found["took"] = [line["backend"] for line in ops.report().lines]
            found["call on tensors of a model us"] = host_us(lambda: call(*arguments))
        with torch.inference_mode():
            arguments = operands(shipped)
            call(*arguments)
            found["host us"] = parts(ops, shipped.op, arguments)
            (plan,) = ops._decider._loaded.values()
            inner, tensors = plan._plan, arguments[: plan._count]
            found |= under_graphs(
                lambda: inner.launch(tensors, inner.outputs(), inner.workspaces()), lambda: call(*arguments)
            )
    return found


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ops", nargs="*", default=[])
    chosen = parser.parse_args().ops
    figures: dict[str, object] = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as temporary:
        for shipped in ONE_EACH:
            if not chosen or shipped.op in chosen:
                figures[shipped.op] = measure(shipped, Path(temporary))
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
