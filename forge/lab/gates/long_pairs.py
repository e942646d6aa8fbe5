"""Chooses shapes in which two axes are long, for the gate `sizes`: kernels choose their way by two sizes at once."""

import itertools
from collections.abc import Mapping

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates.telling_sizes import inner_axes
from forge.lab.inputs.random_sizes import log_uniform, of_class
from forge.lab.inputs.shape_budget import costs_of, largest_operand
from forge.operations.operation import Operation

ROWS = ((65, 256), (257, 1024), (1025, 4096))
"""Ranges of a long number of rows. A range of two octaves has a tile's size in it, or a usual limit of a grid."""
WIDTHS = ((129, 512), (513, 2048), (2049, 8191))
"""Ranges of a long width, beyond a usual block."""
FREE = ((65, 256), (257, 1024))
"""Ranges of another axis that is long, as the columns of a product, or queries that share a head of keys."""
INNER = ((40, 120), (136, 248))
"""Ranges of an inner axis, as a head's size: multiples of eight that are none of sixteen, as in some models."""
FEW_ROWS, SHORT_WIDTHS, MOST_FREE = (2, 16), (33, 79), 4
"""Ranges of the rows and of the width where they are short, and the largest other axis there."""
MOST_ELEMENTS, MOST_FLOPS = 2**20, 2**28
"""Number of elements in an operand, and of floating-point operations, at most. Chosen; each shape then takes some
hundredths of a second."""
LARGE = ((1025, 2047), (2049, 3071))
"""Ranges of the width and of another axis where both are long beside few rows, as weights in decoding."""
MOST_LARGE_ELEMENTS = 2**23
"""Number of elements in an operand there, at most. Chosen; such a call takes some tenths of a second."""
LEAST = 33
"""Size from which an axis that had to be shortened still counts as long."""


def long_pairs(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return a shape for each two axes and each two of their ranges; both sizes are odd, others are short.

    The second axis is shortened until a call costs little; a shape where it is then short is left out. An interpreter
    gets none, since they take it minutes.
    """
    if not kernel.runner.takes_large_shapes:
        return []
    operation = kernel.operation
    ranges: dict[str, tuple[tuple[int, int], ...]] = {operation.row_axis: ROWS, operation.reduced_axis: WIDTHS}
    ranges |= dict.fromkeys(operation.free_axes, FREE) | dict.fromkeys(inner_axes(operation), INNER)
    shapes = []
    for one, other in itertools.combinations(ranges, 2):
        for ends, other_ends in itertools.product(ranges[one], ranges[other]):
            short = _short(kernel, operation)
            shape = {**short, one: _drawn(kernel, one, ends), other: _drawn(kernel, other, other_ends)}
            shapes += _shortened(operation, shape, other)
    for axis in operation.free_axes:
        sizes = (log_uniform(kernel.rng, *ends) for ends in LARGE)
        shape = {**_short(kernel, operation), **dict(zip((operation.reduced_axis, axis), sizes, strict=True))}
        shapes += [shape] if largest_operand(operation, shape) <= MOST_LARGE_ELEMENTS else []
    return [shape for shape in shapes if kernel.fits(shape, 1)]


def _short(kernel: LoadedKernel, operation: Operation) -> dict[str, int]:
    free = {axis: kernel.rng.randint(1, max(1, min(MOST_FREE, kernel.shape[axis]))) for axis in operation.free_axes}
    rows, width = log_uniform(kernel.rng, *FEW_ROWS), log_uniform(kernel.rng, *SHORT_WIDTHS)
    return {**kernel.shape, **free, operation.row_axis: rows, operation.reduced_axis: width}


def _drawn(kernel: LoadedKernel, axis: str, ends: tuple[int, int]) -> int:
    modulus, remainder = (16, 8) if axis in inner_axes(kernel.operation) else (2, 1)
    return of_class(kernel.rng, *ends, modulus, remainder)


def _shortened(operation: Operation, shape: dict[str, int], axis: str) -> list[dict[str, int]]:
    """Return the shape with this axis shortened until it costs little; nothing if it is short then."""
    while largest_operand(operation, shape) > MOST_ELEMENTS or costs_of(operation, shape)[1] > MOST_FLOPS:
        if shape[axis] // 2 < LEAST:
            return []
        shape = {**shape, axis: shape[axis] // 2 | 1}
    return [shape]
