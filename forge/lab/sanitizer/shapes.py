"""Lists the shapes of calls under a sanitizer: few, since calls cost many times the usual, and all awkward."""

from collections.abc import Mapping, Sequence

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates.sizes import other_shapes

REDUCED = (1, 3, 16, 17, 33, 257, 1023)
"""Widths that are asked: one, and odd sizes or neighbours of powers of two, at which a missing mask or tail shows."""
ROWS = (1, 3, 8)
"""Numbers of rows that are asked. One row, an odd number, and a power of two. Chosen; a sanitizer makes calls many
times slower."""
MOST_HELD_OUT = 2
"""Number of held-out shapes that are asked, at most. Chosen; a call under a sanitizer costs many times the usual."""
FREE_SIZES = (1, 17, 65)
"""Sizes of a free axis that are asked: one, and one more than 16 and 64, at which a missing mask or tail shows."""


def watched_shapes(kernel: LoadedKernel) -> Sequence[Mapping[str, int]]:
    """Return odd widths with few rows, row counts, odd sizes of free axes, held-out shapes, and the public one."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    few = min(3, kernel.shape[rows])
    by_reduced = [{**kernel.shape, rows: few, reduced: size} for size in REDUCED]
    by_rows = [{**kernel.shape, rows: count, reduced: min(kernel.shape[reduced], 1025)} for count in ROWS]
    by_free = [
        {**kernel.shape, rows: few, reduced: min(kernel.shape[reduced], 33), axis: size}
        for axis in kernel.operation.free_axes
        for size in FREE_SIZES
    ]
    others = other_shapes(kernel, *by_reduced, *by_rows, *by_free)
    return [*others, *kernel.held_out[:MOST_HELD_OUT], kernel.shape]
