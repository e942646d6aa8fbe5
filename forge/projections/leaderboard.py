"""Per slot (operation, GPU, element type, shape): the kernels by the lower bound of their speedup.

A slot's kernels may have been timed on different machines or against different baselines; `perf_key` and
`baseline` say so, and `within_noise_of_first` says where the order means nothing. Revoked kernels and kernels
without valid evidence have no place.
"""

from dataclasses import dataclass

from forge.domain.digest import canonical
from forge.domain.tensors import shape_slug
from forge.projections.fold import Position
from forge.projections.kernel import Kernel
from forge.projections.registry import RegistryState, ordered

SCHEMA_VERSION = 1
FILE = "leaderboard.json"
RANKED = frozenset({"active", "deprecated"})


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """What kernels compete for."""

    op: str
    gpu: str
    dtype: str
    shape: str
    """As in kernel ids: `b16_h4096`."""


def leaderboard(state: RegistryState) -> dict[Slot, tuple[Kernel, ...]]:
    """Slot -> its kernels, largest lower bound first; equal bounds by lower median time, then kernel_id."""
    slots: dict[Slot, list[Kernel]] = {}
    for kernel in ordered(state):
        if kernel.status in RANKED:
            task = kernel.promoted.event.task
            slot = Slot(task.op, task.target.gpu, task.dtype, shape_slug(task.shape))
            slots.setdefault(slot, []).append(kernel)
    return {slot: tuple(sorted(slots[slot], key=_place)) for slot in sorted(slots)}


def _place(kernel: Kernel) -> tuple[float, float, str]:
    event = kernel.promoted.event
    return (-event.speedup.low, event.candidate_median_ns, event.kernel_id)


def _line(kernel: Kernel, *, rank: int, first: Kernel) -> dict[str, object]:
    event = kernel.promoted.event
    return {
        "rank": rank,
        "kernel_id": event.kernel_id,
        "status": kernel.status,
        "language": event.task.language,
        "speedup": event.speedup.model_dump(mode="json"),
        "within_noise_of_first": event.speedup.high >= first.promoted.event.speedup.low,
        "candidate_median_ns": event.candidate_median_ns,
        "baseline": event.baseline,
        "perf_key": event.perf_key,
        "benchmark_seq": event.benchmark_seq,
    }


def render(state: RegistryState, position: Position) -> bytes:
    """`leaderboard.json`, canonical."""
    slots: list[object] = [
        {
            "op": slot.op,
            "gpu": slot.gpu,
            "dtype": slot.dtype,
            "shape": kernels[0].promoted.event.task.shape,
            "kernels": [_line(kernel, rank=rank, first=kernels[0]) for rank, kernel in enumerate(kernels, start=1)],
        }
        for slot, kernels in leaderboard(state).items()
    ]
    return canonical({"schema_version": SCHEMA_VERSION, "ledger": position.document(), "slots": slots})
