"""What a gate may ask of an operation whose operands grow with rows and width together, as a cache of keys does.

A row of a matrix is some thousand numbers; of a cache it is millions, and as many rows would be drawn, written and
judged in minutes, or wouldn't fit in at all.
"""

import math
import random
from collections.abc import Mapping

from forge.domain.operation import Operation

MOST_DRAWN = 2**24
"""Elements of the largest operand that rows are added to freely; a public shape may have more."""
MOST_ASKED = 2**26
"""Elements of all operands together that another axis is made longer for freely; a public shape may have more."""
MOST_FLOPS = 2**34
"""Likewise, of one call: the oracle's own work grows with it."""

ODD_WIDTHS = (16, 512)
"""Half of the least and the largest odd width: several blocks of any usual size, and a rest."""


def odd_width(rng: random.Random) -> int:
    """A width by lot that no vector instruction or block divides."""
    return 2 * rng.randint(*ODD_WIDTHS) + 1


def largest_row(operation: Operation, shape: Mapping[str, int]) -> int:
    """Elements that one row adds to the operand that it adds most to, at least one."""
    one = {**shape, operation.row_axis: 1}
    with_rows = (spec for spec in (*operation.inputs, *operation.outputs) if operation.row_axis in spec.axes)
    return max(1, *(math.prod(spec.sizes(one)) for spec in with_rows))


def rows_within(operation: Operation, shape: Mapping[str, int], wanted: int) -> int:
    """So many of the wanted rows as are quickly drawn; never fewer than the shape has, or one."""
    afforded = MOST_DRAWN // largest_row(operation, shape)
    return min(wanted, max(1, shape[operation.row_axis], afforded))


def narrowed(operation: Operation, shape: Mapping[str, int]) -> Mapping[str, int]:
    """The shape with its width halved until its rows are quickly drawn."""
    rows, width = shape[operation.row_axis], shape[operation.reduced_axis]
    while width > 1 and rows * largest_row(operation, {**shape, operation.reduced_axis: width}) > MOST_DRAWN:
        width //= 2
    return {**shape, operation.reduced_axis: width}


def affordable(
    operation: Operation, shape: Mapping[str, int], public: Mapping[str, int], *, most_elements: int = MOST_ASKED
) -> Mapping[str, int]:
    """The shape with its free axes halved, the longest first, until it costs little, or what the public one does."""

    def costs(of: Mapping[str, int]) -> tuple[int, int]:
        operands = (*operation.inputs, *operation.returned)
        return sum(math.prod(spec.sizes(of)) for spec in operands), operation.flops(of)

    elements, flops = costs(public)
    smaller = dict(shape)
    while any(
        size > most
        for size, most in zip(costs(smaller), (max(elements, most_elements), max(flops, MOST_FLOPS)), strict=True)
    ):
        longest = max(operation.free_axes, key=lambda axis: smaller[axis], default=None)
        if longest is None or smaller[longest] <= 1:
            break
        smaller[longest] //= 2
    return smaller
