"""Experiments: one change to a kernel, and how it ended.

An experiment changes one axis. Layers are ordered by what they usually gain: structure (L1) gains factors, resources
(L4) gain percents. So an author begins at L1.
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
        "barriers": "fewer synchronisations of threads, or of fewer threads",
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
        "threads": "threads of the host and how work is divided among them",
    },
}
"""Axes of each layer, with what each means. An experiment changes one: with two, the figure explains neither."""
Ended = Literal["improved", "no_change", "regressed", "incorrect", "build_failed"]
ENDS: tuple[Ended, ...] = get_args(Ended)
Against = Literal["parent"] | BaselineKind
"""Comparison of an experiment: its parent candidate, the kernel promoted at that time, or a baseline."""


def layer_of(axis: str) -> Layer | None:
    """Return the layer of an axis; None if the name is no axis."""
    return next((layer for layer, axes in AXES.items() if axis in axes), None)


class Conclusion(Value):
    """How an experiment ended, and the figure that decided it."""

    ended: Ended
    reason: ReasonCode | None
    """Reason why a phase refused the candidate; None if none did."""
    against: Against | None
    """Comparison that the speedup is over; None if nothing was timed."""
    speedup: Interval | None
    """Time of the comparison divided by the candidate's, with its 95 % interval."""


def end_of(speedup: Interval) -> Ended:
    """Return the end that a measured speedup shows. An interval that includes 1 is no change."""
    if speedup.low > 1:
        return "improved"
    return "regressed" if speedup.high < 1 else "no_change"


def end_of_refusal(code: ReasonCode, *, stage: str) -> Ended | None:
    """Return the end that a refusal shows; None if the refusal says nothing about the candidate."""
    if code in UNDECIDED or stage == "submit":
        return None
    return "build_failed" if stage == "build" or code == "COMPILE_ERROR" else "incorrect"


def over(interval: Interval, other: Interval) -> Interval:
    """Return the ratio of two speedups over one baseline, with an interval from the worst case to the best.

    Its low end is above 1 if and only if `interval` lies wholly above `other`.
    """
    return Interval(ratio=interval.ratio / other.ratio, low=interval.low / other.high, high=interval.high / other.low)
