"""Ranks the kernels of each slot (operation, GPU, element type, shape) by the lower bound of their speedup.

A slot's kernels may have been timed on different machines or against different baselines: see `perf_key` and
`baseline`. `within_noise_of_first` says where the order means nothing. Revoked kernels and kernels without valid
evidence have no rank.
"""

from itertools import groupby
from typing import NamedTuple

import orjson

from forge.projections.fold import Position
from forge.projections.kernel import PromotedKernel

SCHEMA_VERSION = 1
"""Version of the form of `leaderboard.json`."""
FILE = "leaderboard.json"


class RankedKernel(NamedTuple):
    """One kernel in its slot, as the view `leaderboard` ranks it."""

    op: str
    gpu: str
    dtype: str
    shape: str
    """Canonical JSON."""
    rank: int
    low: float
    high: float
    shown: str
    """Other fields of its line, as canonical JSON."""

    @property
    def slot(self) -> tuple[str, ...]:
        """Return the slot for which kernels compete."""
        return self[:4]


RANKED = """
    SELECT op, gpu, dtype, shape, leaderboard.rank, low, high, document.rank AS shown
    FROM leaderboard JOIN kernel_documents AS document USING (kernel_id)
    ORDER BY op, gpu, dtype, shape, leaderboard.rank
"""


def shown(kernel: PromotedKernel) -> dict[str, object]:
    """Return a kernel's line without what depends on the other kernels of its slot."""
    event = kernel.promoted.event
    return {
        "kernel_id": event.kernel_id,
        "status": kernel.status,
        "language": event.task.language,
        "speedup": event.speedup.model_dump(mode="json"),
        "candidate_median_ns": event.candidate_median_ns,
        "baseline": event.baseline,
        "perf_key": event.perf_key,
        "benchmark_seq": event.benchmark_seq,
    }


def render(ranked: list[RankedKernel], position: Position) -> bytes:
    """Return `leaderboard.json`, canonical; `ranked` is in the order of slots and ranks."""
    slots: list[object] = []
    for slot, group in groupby(ranked, key=lambda one: one.slot):
        kernels = list(group)
        op, gpu, dtype, shape = slot
        lines = [
            {
                **orjson.loads(one.shown),
                "rank": one.rank,
                "within_noise_of_first": one.high >= kernels[0].low,
            }
            for one in kernels
        ]
        slots.append({"op": op, "gpu": gpu, "dtype": dtype, "shape": orjson.loads(shape), "kernels": lines})
    document = {"schema_version": SCHEMA_VERSION, "ledger": position.document(), "slots": slots}
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
