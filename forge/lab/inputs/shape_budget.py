"""Limits what a gate asks of an operation whose operands grow with rows and width together, as a cache of keys does.

A row of a matrix has some thousand numbers, a row of such a cache has millions. Drawing, writing and judging the
usual number of rows would take minutes, or wouldn't fit into memory.
"""

import math
import random
from collections.abc import Mapping

from forge.domain.tensors import Slots
from forge.operations.operation import Operation

MOST_DRAWN = 2**24
"""Number of elements in the largest operand up to which rows are added; a public shape may have more. Chosen; the
host draws and judges every element."""
MOST_ASKED = 2**26
"""Number of elements in all operands up to which another axis is made longer; a public shape may have more. Chosen:
four operands of `MOST_DRAWN`."""
MOST_FLOPS = 2**34
"""Floating-point operations of one call up to which another axis is made longer. Chosen; the oracle takes about a
second for as many in fp64 on one core."""

ROOM_SHARE, MOST_WITH_ROOM = 0.5, 2**20
"""Chance that a cache has a slot for each token, and number of elements in its largest operand, at most. Chosen; a
cache that is too short for its tokens is also asked, but those of engines are long."""
HALF_ODD_WIDTHS = (16, 512)
"""Range of half of an odd width, so that the width has several blocks of any usual size and a remainder."""


def odd_width(rng: random.Random) -> int:
    """Draw a width that no vector instruction or block divides."""
    return 2 * rng.randint(*HALF_ODD_WIDTHS) + 1


def largest_row(operation: Operation, shape: Mapping[str, int]) -> int:
    """Return the most elements that one row adds to an operand, at least one."""
    one = {**shape, operation.row_axis: 1}
    with_rows = (spec for spec in (*operation.inputs, *operation.outputs) if operation.row_axis in spec.axes)
    return max((1, *(math.prod(spec.sizes(one)) for spec in with_rows)))


def largest_operand(operation: Operation, shape: Mapping[str, int]) -> int:
    """Return the number of elements in the largest operand."""
    return max(math.prod(spec.sizes(shape)) for spec in (*operation.inputs, *operation.returned))


def rows_within(operation: Operation, shape: Mapping[str, int], wanted: int) -> int:
    """Return the wanted rows, limited to what is quickly drawn, but at least the shape's own rows and one."""
    afforded = MOST_DRAWN // largest_row(operation, shape)
    return min(wanted, max(1, shape[operation.row_axis], afforded))


def narrowed(operation: Operation, shape: Mapping[str, int]) -> Mapping[str, int]:
    """Return the shape with its width halved until its rows are quickly drawn."""
    rows, width = shape[operation.row_axis], shape[operation.reduced_axis]
    while width > 1 and rows * largest_row(operation, {**shape, operation.reduced_axis: width}) > MOST_DRAWN:
        width //= 2
    return {**shape, operation.reduced_axis: width}


def costs_of(operation: Operation, shape: Mapping[str, int]) -> tuple[int, int]:
    """Return the elements of all operands, and the floating-point operations."""
    operands = (*operation.inputs, *operation.returned)
    return sum(math.prod(spec.sizes(shape)) for spec in operands), operation.flops(shape)


def affordable(
    operation: Operation,
    shape: Mapping[str, int],
    public: Mapping[str, int],
    *,
    most_elements: int = MOST_ASKED,
    most_flops: int = MOST_FLOPS,
) -> Mapping[str, int]:
    """Halve the shape's free axes, the longest first, until it costs little or as much as the public shape."""
    elements, flops = costs_of(operation, public)
    limits = max(elements, most_elements), max(flops, most_flops)
    smaller = dict(shape)
    while any(cost > limit for cost, limit in zip(costs_of(operation, smaller), limits, strict=True)):
        longest = max(operation.free_axes, key=lambda axis: smaller[axis], default=None)
        if longest is None or smaller[longest] <= 1:
            break
        smaller[longest] //= 2
    return smaller


def with_room(operation: Operation, shape: Mapping[str, int], rng: random.Random) -> Mapping[str, int]:
    """Return the shape, at random with slots for all entries that name one, if it stays quick."""
    for spec in operation.inputs:
        if isinstance(spec.values, Slots):
            entries, roomy = math.prod(spec.sizes(shape)), dict(shape)
            roomy[spec.values.axis] = entries + rng.randint(0, entries)
            short = shape[spec.values.axis] < entries and rng.random() < ROOM_SHARE
            shape = roomy if short and largest_operand(operation, roomy) <= MOST_WITH_ROOM else shape
    return shape
