"""What a plain copy reaches of the floor, by its size: hardly a kernel that moves as much can do better."""

import statistics
from typing import Any

import torch

from forge.domain.device import Ceilings
from forge.lab.timing.roofline import floor_ns
from forge.lab.timing.rotated_sets import FEWEST_SETS, ROTATION_BYTES

MEGABYTES = (8.4, 33.6, 67.1, 134.2, 268.4, 536.9)
"""Read and written together; 67.1 and 134.2 are rows of 4096 in half precision, 4096 and 8192 of them."""
ROUNDS = 20

Json = dict[str, Any]  # Any: a JSON document


def copies(ceilings: Ceilings) -> list[Json]:
    """For each size the faster of torch's copy and its addition of a constant, in windows like those of kernels."""
    return [_copied(megabytes, ceilings) for megabytes in MEGABYTES]


def _copied(megabytes: float, ceilings: Ceilings) -> Json:
    elements = int(megabytes * 1e6 / 4)
    count = max(FEWEST_SETS, -(-ROTATION_BYTES // (4 * elements)))
    sets = [(_drawn(elements), torch.empty(elements, dtype=torch.bfloat16, device="cuda")) for _ in range(count)]
    by_copy = _window_ns([(source, target, False) for source, target in sets])
    by_adding = _window_ns([(source, target, True) for source, target in sets])
    taken_ns = min(by_copy, by_adding) / count
    floor = floor_ns(4 * elements, ceilings, written_bytes=2 * elements)
    return {"megabytes": megabytes, "us": taken_ns / 1e3, "floor_us": floor / 1e3, "of_floor": floor / taken_ns}


def _drawn(elements: int) -> torch.Tensor:
    return torch.randn(elements, device="cuda").bfloat16()


def _window_ns(calls: list[tuple[torch.Tensor, torch.Tensor, bool]]) -> float:
    """The median time of one graph of all calls, in windows like those of kernels."""
    from forge.guest.clock import Executable, Marks, cache_cleaner, window_ns

    def all_of_them() -> None:
        for source, target, adding in calls:
            torch.add(source, 1.0, out=target) if adding else target.copy_(source)

    all_of_them()
    torch.cuda.synchronize()
    graph, marks = torch.cuda.CUDAGraph(keep_graph=True), Marks()
    with torch.cuda.graph(graph):
        marks.begin()
        all_of_them()
        marks.end()
    ready, clean = Executable(graph, marks), cache_cleaner()
    taken_ns = []
    for _ in range(ROUNDS):
        torch.sum(clean, dim=0)
        torch.cuda.synchronize()
        taken_ns.append(window_ns(ready, 1))
    return float(statistics.median(taken_ns))
