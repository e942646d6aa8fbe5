"""What one change to a kernel was meant to show, and how it ended.

An experiment changes one axis. The layers and their order are those of the playbooks: structure wins factors,
resources win percents, so an author begins at L1.
"""

from typing import Literal, get_args

from forge.domain.digest import Value
from forge.domain.evidence import Interval
from forge.domain.policy import BaselineKind
from forge.domain.verdict import UNDECIDED, ReasonCode

Layer = Literal["L1", "L2", "L3", "L4"]
Axis = Literal[
    "algorithm",
    "dispatch",
    "fusion",
    "partition",
    "precision",
    "residence",
    "tiling",
    "barriers",
    "persistence",
    "pipelining",
    "reduction_scope",
    "arithmetic",
    "cache_policy",
    "indexing",
    "matrix_units",
    "vector_width",
    "block_size",
    "grid_size",
    "registers",
    "shared_memory",
    "threads",
]
LAYER_NAMES: dict[Layer, str] = {"L1": "structure", "L2": "synchronisation", "L3": "instruction", "L4": "resource"}
AXES: dict[Layer, dict[Axis, str]] = {
    "L1": {
        "algorithm": "another way to the same result: one pass for two, selection for a sort",
        "dispatch": "another existing kernel for some sizes",
        "fusion": "a neighbouring step taken in, or split off",
        "partition": "which rows, columns or heads one block or thread owns",
        "precision": "in what type values are kept between the steps",
        "residence": "where the working set lives: registers, shared memory, cache",
        "tiling": "the tile's sizes and the order in which tiles are walked",
    },
    "L2": {
        "barriers": "fewer meetings of threads, or narrower ones",
        "persistence": "blocks that stay and fetch the next piece of work",
        "pipelining": "loads of the next step under this step's arithmetic; stages; specialised warps",
        "reduction_scope": "who reduces with whom: lane, warp, block, cluster, grid",
    },
    "L3": {
        "arithmetic": "other instructions for the same sum: fma, exp2, packed halves, fast division",
        "cache_policy": "hints on loads and stores: streaming, evict first, prefetch",
        "indexing": "offsets: width, hoisting, strength reduction, unrolling",
        "matrix_units": "which matrix instruction, in which shape",
        "vector_width": "bytes of one load or store",
    },
    "L4": {
        "block_size": "threads or warps of a block",
        "grid_size": "how many blocks, splits and waves",
        "registers": "registers of a thread, spills",
        "shared_memory": "bytes of shared memory of a block, stages that fit",
        "threads": "threads of the host and how work is dealt out among them",
    },
}
"""One axis at a time: with two changed, the figure says nothing about either."""
Ended = Literal["improved", "no_change", "regressed", "incorrect", "build_failed"]
ENDS: tuple[Ended, ...] = get_args(Ended)
Against = Literal[BaselineKind, "parent"]
"""What it was held against: the candidate it came from, the kernel that was promoted then, or a baseline."""


def layer_of(axis: str) -> Layer | None:
    """The layer that an axis belongs to; None for no axis of the list."""
    return next((layer for layer, axes in AXES.items() if axis in axes), None)


class Conclusion(Value):
    """How an experiment ended, and on what figure."""

    ended: Ended
    reason: ReasonCode | None
    """Why it couldn't be promoted on this evidence, where a phase refused it."""
    against: Against | None
    """None where nothing was timed."""
    speedup: Interval | None
    """What it was held against over the candidate, with its 95 % interval."""


def end_of(speedup: Interval) -> Ended:
    """By disjoint intervals: what includes 1 is no change."""
    if speedup.low > 1:
        return "improved"
    return "regressed" if speedup.high < 1 else "no_change"


def end_of_refusal(code: ReasonCode, *, stage: str) -> Ended | None:
    """What a refusal makes of an experiment; None where it says nothing about the candidate."""
    if code in UNDECIDED or stage == "submit":
        return None
    return "build_failed" if stage == "build" or code == "COMPILE_ERROR" else "incorrect"


def over(interval: Interval, other: Interval) -> Interval:
    """The ratio of two speedups over one baseline: from the worst of both to the best of both.

    Its low end is above 1 exactly where the two intervals are disjoint.
    """
    return Interval(ratio=interval.ratio / other.ratio, low=interval.low / other.high, high=interval.high / other.low)
