"""Chooses shapes with one size that kernels often treat by code of its own, for the gate `sizes`."""

from collections.abc import Mapping

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates.chosen_shapes import (
    EDGES,
    FEW_COLUMNS,
    INTERPRETED_ROWS,
    INTERPRETED_WIDTHS,
    MODEL_WIDTHS,
    MOST_ELEMENTS,
    MOST_FREE,
    ROWS,
    SHORT_SUM,
    VERY_WIDE,
    WIDE,
    WIDTHS,
    wide_rows,
)
from forge.lab.inputs.random_sizes import in_each_octave, log_uniform, of_class
from forge.lab.inputs.shape_budget import MOST_DRAWN, affordable, largest_operand
from forge.operations.operation import Operation

INTERMEDIATE_WIDTHS = (5632, 6656, 8960, 11008, 13824)
"""Sizes in published models that have a larger odd factor: those between the two products of a feed-forward layer."""
BESIDE_POWERS = tuple(
    sorted({2**power + beside for power in range(2, 15) for beside in (-1, 0, 1)} - {*EDGES, *MODEL_WIDTHS})
)
"""All other powers of two from 4 to 16384, and the sizes beside them. These are a vector, a warp or a block, and one
element more or less. Other axes are short there."""
ODD_FACTORS, MOST_ROUND_ROWS, MOST_ROUND_FREE, WIDEST_ROUND = (3, 5, 7, 9), 512, 2**13, 2**14
"""Odd factors of round sizes, and the largest such number of rows, size of another axis, and width. Kernels have code
of their own for heads of 80 or 96 numbers, groups of 5 or 6 heads, and batches of 24."""
INNER_SIZES, MOST_INNER = (1, 8, 16, 32, 40, 64, 72, 80, 96, 112, 128, 160, 192, 256, 320, 512, 576), 256
"""Sizes that are asked of an inner axis, and the size up to which one is drawn in each octave. They are sizes of
heads in published models. A kernel with other limits says so in a domain, and is asked at its edges."""
LARGE_POWERS = (512, 1024, 2048, 4096, 8192)
"""Powers of two beyond `FREE_EDGES` that are asked of other axes, as the columns of a product of matrices."""
ROWS_BESIDE_POWERS = tuple(sorted({2**power + beside for power in range(2, 11) for beside in (-1, 0, 1)} - {*ROWS}))
"""Other numbers of rows that are asked with few columns: powers of two from 4 to 1024, and the numbers beside them.
A tile of rows is then full, short of one row, or followed by one."""
MOST_INTERPRETED = 257
"""Largest number of rows, or size of another axis, that an interpreter is asked here. Chosen; it takes long."""
MOST_INTERPRETED_INNER = 128
"""Largest size of an inner axis that an interpreter is asked. Chosen; it takes long."""
TOLD_ROWS = (1, 1, 2, 3)
"""Numbers of rows beside a telling size of another axis, of which one is drawn: mostly one, as decoding asks."""
LONG_REMAINDERS, LONG_WIDTHS = 16, (1025, 2**13)
"""Number of remainders of long widths, and their range. Vectors of up to sixteen elements divide them, and a kernel
often reads one long row by code of its own."""
WIDE_REMAINDERS = 8
"""Number of remainders of the width in rows that are wider than a block of threads. Chosen: vectors of up
to eight elements divide it, and each row costs as much as some long ones."""
MOST_BESIDE_LONG = 512
"""Size up to which one other axis is drawn beside a long row. Kernels have tiles of up to 256 columns, and code of
their own where both are long."""
BELOW_SIXTEEN_BITS, BEYOND_SIXTEEN_BITS, LARGEST_VOCABULARIES = (32_769, 65_535), (65_537, 98_304), (196_609, 2**18)
"""Ranges of the widths of three more long rows, in elements. A 16-bit counter overflows within the second one; models
have vocabularies in the third one. Other axes have size one, so that a cache of keys of usual heads can be drawn.

An operation whose listed rows are short isn't asked the third one. Triton takes 16 seconds to compile a norm with one
block for 2^18 columns, and 80 for one more."""
MOST_TOLD_ELEMENTS = 2**15
"""Number of elements in an operand of a shape with one telling size, at most. It is more only if the operand has more
with a size of two along each other axis. Chosen; there are some hundred such shapes."""


def telling_sizes(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes with one telling size: beside a power of two, a power, or a small odd number times a power.

    Other axes are short, so that each operand has few elements where the telling size allows it.
    """
    rng, operation = kernel.rng, kernel.operation
    rows, reduced, large = operation.row_axis, operation.reduced_axis, kernel.runner.takes_large_shapes
    widths = sorted({*BESIDE_POWERS, *INTERMEDIATE_WIDTHS, *_round_sizes(WIDEST_ROUND)})
    counts = sorted({*ROWS_BESIDE_POWERS, *_round_sizes(MOST_ROUND_ROWS)})
    free = [*ODD_FACTORS[1:], *_round_sizes(MOST_ROUND_FREE), *LARGE_POWERS]
    least = {**kernel.shape, **dict.fromkeys((rows, reduced, *operation.free_axes), 1)}
    if not large:
        widths = rng.sample(widths, INTERPRETED_WIDTHS)
        free = rng.sample([size for size in free if size <= MOST_INTERPRETED], INTERPRETED_WIDTHS)
        counts = rng.sample([count for count in counts if count <= MOST_INTERPRETED], INTERPRETED_ROWS)
    told = [(reduced, size) for size in widths] + [(rows, size) for size in counts]
    for axis in operation.free_axes:
        quick = [size for size in free if largest_operand(operation, {**least, axis: size}) <= MOST_TOLD_ELEMENTS]
        told += [(axis, size) for size in free if size <= MOST_FREE or size in quick]
    inner = sorted({*INNER_SIZES, *in_each_octave(rng, 2, MOST_INNER)})
    inner = (
        inner if large else rng.sample([size for size in inner if size <= MOST_INTERPRETED_INNER], INTERPRETED_WIDTHS)
    )
    told += [(axis, size) for axis in inner_axes(operation) for size in inner]
    shapes = [_with_size(kernel, axis, size) for axis, size in told]
    long = [of_class(rng, *LONG_WIDTHS, LONG_REMAINDERS, remainder) for remainder in range(LONG_REMAINDERS * large)]
    rng.shuffle(long)
    singles = [_long_row(kernel, width, turn) for turn, width in enumerate(long)]
    wide = [of_class(rng, *WIDE, WIDE_REMAINDERS, remainder) for remainder in range(WIDE_REMAINDERS)]
    vocabularies = (LARGEST_VOCABULARIES,) * (wide_rows(operation) == VERY_WIDE)
    beyond = [rng.randint(*ends) for ends in (BELOW_SIXTEEN_BITS, BEYOND_SIXTEEN_BITS, *vocabularies)]
    very_long = [{**least, reduced: width} for width in (*wide, *beyond)] * large
    return [
        *shapes,
        *(one for one in singles if largest_operand(operation, one) <= MOST_ELEMENTS),
        *(one for one in very_long if largest_operand(operation, one) <= MOST_DRAWN and kernel.fits(one, 1)),
    ]


def _long_row(kernel: LoadedKernel, width: int, turn: int) -> Mapping[str, int]:
    """Return one row of this width, with a drawn size of one other axis; the axes take turns.

    In every second round of turns the others have size one, as a single head of keys has; also where they must.
    """
    operation, rng = kernel.operation, kernel.rng
    shape, free = {**_with_size(kernel, operation.reduced_axis, width), operation.row_axis: 1}, operation.free_axes
    if not free:
        return shape
    if turn // len(free) % 2 == 0 or largest_operand(operation, shape) > MOST_ELEMENTS:
        shape |= dict.fromkeys(free, 1)
    axis = free[turn % len(free)]
    each = max(1, largest_operand(operation, {**shape, axis: MOST_BESIDE_LONG}) // MOST_BESIDE_LONG)
    return {**shape, axis: log_uniform(rng, 1, max(1, min(MOST_BESIDE_LONG, MOST_ELEMENTS // each)))}


def inner_axes(operation: Operation) -> list[str]:
    """Return the axes besides the rows, the sum and the free ones: kernels hold all of such an axis, as a head's."""
    return [
        axis
        for axis in operation.axes
        if axis not in (operation.row_axis, operation.reduced_axis, *operation.free_axes)
    ]


def _round_sizes(most: int) -> list[int]:
    """Return each product of an odd factor and a power of two from 2 on, up to `most`, in ascending order."""
    return sorted(
        odd * 2**power for odd in ODD_FACTORS for power in range(1, most.bit_length()) if odd << power <= most
    )


def _with_size(kernel: LoadedKernel, axis: str, size: int) -> Mapping[str, int]:
    """Return a shape with this size of one axis, a few rows and a drawn width, made smaller until it costs little."""
    operation = kernel.operation
    rows, reduced = operation.row_axis, operation.reduced_axis
    most = WIDTHS if axis == rows else SHORT_SUM
    shape = {
        **kernel.shape,
        **{one: min(FEW_COLUMNS, kernel.shape[one]) for one in operation.free_axes},
        rows: kernel.rng.choice(TOLD_ROWS),
        reduced: min(kernel.shape[reduced], log_uniform(kernel.rng, *most)),
        axis: size,
    }
    shortened = [one for one in (reduced, *operation.free_axes, rows) if one != axis]
    for one in shortened:
        share = MOST_TOLD_ELEMENTS / max(1, largest_operand(operation, shape))
        shape[one] = max(min(2, shape[one]), int(shape[one] * min(1.0, share)))
    return affordable(operation, shape, kernel.shape)
