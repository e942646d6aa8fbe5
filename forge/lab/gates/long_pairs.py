"""Chooses shapes in which two axes are long, for the gate `sizes`: kernels choose their way by two sizes at once."""

import itertools
from collections.abc import Iterator, Mapping

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
Range = tuple[int, int]
LARGE: tuple[tuple[Range, ...], ...] = (
    ((257, 600), (4097, 8191)),
    ((129, 500), (8193, 16_383)),
    ((4, 7), (4097, 8191)),
)
"""Ranges of the rows and of the width together: prompts of wide models, and some requests with long pasts."""
LARGE_FREE: tuple[tuple[Range, ...], ...] = (
    (FEW_ROWS, (1025, 2047), (2049, 3071)),
    ((17, 48), (2049, 2700), (2049, 2700)),
    ((2049, 3071), SHORT_WIDTHS, (9, 32)),
    ((769, 1000), (513, 640), (513, 560)),
    ((64, 120), (1025, 2047), (1025, 2047)),
    ((256, 400), (513, 1023), (1025, 1600)),
    ((17, 100), (129, 200), (16_385, 18_000)),
    ((8193, 9500), SHORT_WIDTHS, (8, 12)),
    ((513, 800), (65, 127), (33, 48)),
)
"""Ranges of the rows, of the width and of another axis together. They are weights in decoding, weights beside some
rows, many heads beside a long prompt, and a product of which all three sizes are long. Then come the weights of a
small model beside a batch and beside a prompt. Last are a vocabulary or a long cache, heads beside a very long
prompt, and a large model's heads beside a prompt."""
VOCABULARY: tuple[Range, ...] = (FEW_ROWS, (2049, 2600), (8193, 9500))
"""Ranges of the same axes for the last product of a decode step, whose weights are larger than other operands."""
USUAL_ROWS, USUAL_WIDTHS, SHORT_ROW = ((4, 8), (64, 128), (513, 700)), (257, 700), 1024
"""Ranges of the rows and of the width beside the heads and groups of a listed workload. A listed width up to the last
number is kept, as that of a head."""
HELD_INNER, BESIDE_INNER = (512, 576), (513, 900)
"""Sizes of the largest heads in published models, and the range of the width beside them: more than a head has."""
MOST_LARGE_ELEMENTS, MOST_LARGE_FLOPS, MOST_VOCABULARY_ELEMENTS = 2**23, 2**30, 2**25
"""Number of elements in an operand of these, and of floating-point operations, at most, and of a vocabulary's
weights. Chosen; such a call takes some tenths of a second."""
LARGE_DRAWS = 16
"""Number of draws of such a shape until one is quick, at most. Chosen: a fifth of those with many heads isn't."""
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
    large = (*_large(kernel, operation), *_usual(kernel, operation))
    return [shape for shape in (*shapes, *large) if kernel.fits(shape, 1)]


def _large(kernel: LoadedKernel, operation: Operation) -> Iterator[dict[str, int]]:
    """Yield shapes with large operands; other axes are short, and have size one only if they must."""
    rows, reduced = operation.row_axis, operation.reduced_axis
    wanted: list[tuple[tuple[str, ...], tuple[Range, ...]]] = [((rows, reduced), ends) for ends in LARGE]
    wanted += [((rows, reduced, axis), ends) for axis in operation.free_axes for ends in (*LARGE_FREE, VOCABULARY)]
    for axes, ranges in wanted:
        ones = dict.fromkeys((axis for axis in operation.free_axes if axis not in axes), 1)
        most = MOST_VOCABULARY_ELEMENTS if ranges == VOCABULARY else MOST_LARGE_ELEMENTS
        for _ in range(LARGE_DRAWS):
            sizes = {axis: _drawn(kernel, axis, ends) for axis, ends in zip(axes, ranges, strict=True)}
            shapes = ({**_short(kernel, operation, least=2), **sizes}, {**kernel.shape, **ones, **sizes})
            shape = next((one for one in shapes if is_quick(operation, one, most)), None)
            if shape is not None:
                yield shape
                break


def _usual(kernel: LoadedKernel, operation: Operation) -> Iterator[Mapping[str, int]]:
    """Yield shapes with the heads, groups and columns of each listed workload, and with the largest heads."""
    rng, rows, reduced = kernel.rng, operation.row_axis, operation.reduced_axis
    kept = [axis for axis in operation.axes if axis not in (rows, reduced)] if operation.free_axes else []
    listed = {tuple(one[axis] for axis in kept): one for one in operation.workloads if kept}
    for one, ends in itertools.product(listed.values(), (USUAL_ROWS[0], rng.choice(USUAL_ROWS[1:]))):
        for _ in range(LARGE_DRAWS):
            width = one[reduced] if one[reduced] <= SHORT_ROW else _drawn(kernel, reduced, USUAL_WIDTHS)
            shape = {**one, rows: _drawn(kernel, rows, ends), reduced: width}
            if is_quick(operation, shape):
                yield shape
                break
    for axis in inner_axes(operation):
        held = {axis: rng.choice(HELD_INNER), reduced: _drawn(kernel, reduced, BESIDE_INNER)}
        shape = {**_short(kernel, operation), rows: rng.randint(*USUAL_ROWS[0]), **held}
        if is_quick(operation, shape):
            yield shape


def is_quick(operation: Operation, shape: Mapping[str, int], most: int = MOST_LARGE_ELEMENTS) -> bool:
    """Whether a call at a large shape takes some tenths of a second."""
    return largest_operand(operation, shape) <= most and costs_of(operation, shape)[1] <= MOST_LARGE_FLOPS


def _short(kernel: LoadedKernel, operation: Operation, *, least: int = 1) -> dict[str, int]:
    most = {axis: max(1, min(MOST_FREE, kernel.shape[axis])) for axis in operation.free_axes}
    free = {axis: kernel.rng.randint(min(least, size), size) for axis, size in most.items()}
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
