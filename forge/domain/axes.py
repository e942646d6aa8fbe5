"""Names of what an experiment changes and of how it ends. It imports nothing heavy.

An experiment changes one axis. Layers are ordered by what they usually gain: structure (L1) gains factors, resources
(L4) gain percents. So an author begins at L1.
"""

from typing import Literal, get_args

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


def layer_of(axis: str) -> Layer | None:
    """Return the layer of an axis; None if the name is no axis."""
    return next((layer for layer, axes in AXES.items() if axis in axes), None)
