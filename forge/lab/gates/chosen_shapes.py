"""Chooses the shapes that the gate `sizes` asks: known edges, drawn sizes, several tails at once, and large ones."""

import itertools
import math
from collections.abc import Mapping, Sequence

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.inputs.random_sizes import WIDEST, in_each_octave, log_uniform, near_shape, of_class
from forge.lab.inputs.shape_budget import affordable, largest_operand, largest_row, narrowed, rows_within
from forge.operations.operation import Operation

EDGES = (1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 127, 129, 255, 257, 1023, 1025, 4095, 4097)
"""Sizes of the axis that is summed over, besides those drawn in each octave. A missing tail, mask or remainder loop
shows at one of them."""
MODEL_WIDTHS = (
    *(64, 128, 256, 512, 768, 1024, 1536, 2048, 2304, 2560, 2880, 3072, 3584, 3840, 4096, 4544, 4608, 5120, 5376),
    *(6144, 7168, 8192),
)
"""Sizes of the axis that is summed over in published models, and powers of two. Kernels have code of their own for
them, and no drawn size is likely to be one."""
INTERPRETED_WIDTHS, INTERPRETED_ROWS = 4, 2
"""Two counts of questions to an interpreter: widths of each of these two lists, and numbers of rows beside powers of
two. They are drawn at random, since an interpreter takes long."""
FREE_EDGES = (1, 2, 3, 4, 7, 8, 16, 17, 31, 32, 33, 64, 65, 127, 128, 129, 256, 257, 1025)
"""Sizes of any other axis that may have tails, with few rows and a short sum. Some more are drawn up to
`MOST_FREE`."""
MOST_FREE = 1024
"""Size up to which lengths of other axes are drawn in each octave. Chosen; longer ones cost time to draw and to
judge."""
SHORT_SUM = (65, 257)
"""Range from which the width is drawn at random while other axes vary. It begins above 64, a usual block; a longer
sum costs time."""
ROWS = (0, 1, 2, 3, 5, 8, 13, 64, 256, 257)
"""Numbers of rows that are always asked: none, a few, and numbers around 256, where a last block of rows is full or
holds one."""
SOME_ROWS, MOST_SOME_ELEMENTS = (4, 24), 2**16
"""Range of a number of rows at each of these widths, and the most elements of an operand there. A program of several
rows is then full, or not."""
MOST_EQUAL_ELEMENTS, EQUAL_RANGE = 2**16, (4, 129)
"""Number of elements of an operand, at most, and range of the size where several axes have the same size. A kernel
may tell its axes apart by their sizes."""
MOST_ROWS, MOST_TALL_ELEMENTS = 4096, 2**15
"""Number of rows up to which one is drawn in each octave, and the most elements of rows times width there."""
SINGLE_ROW_REMAINDERS = 8
"""Number of remainders of the width in shapes of one row, which kernels often treat by code of its own. Vectors of up
to eight elements divide it."""
SINGLE_ROW_FREE = ((2, 64), (65, 257))
"""Ranges from which the size of another axis is drawn in shapes of one row: within a usual block, and beyond it."""
MOST_BOTH, MOST_BOTH_ELEMENTS, BOTH_WIDTHS = 512, 2**18, (512, 2**14)
"""Three limits of shapes with an octave of rows and an octave of widths. They are the most rows, the most elements of
an operand, and the range of widths. Kernels choose their way by both numbers."""
TWO_DRAWS_FROM = 1024
"""Width in elements from which two widths are drawn in each octave. Such an octave has more widths, and kernels
change there how they read a row."""
NEAR_SHAPES = 3
"""Number of shapes drawn near the public one. They are new each time, so an earlier refusal tells nothing about
them."""
CORNERS = ((2, 1, 1024), (2, 1, 1024), (4, 2, 192), (16, 8, 192))
"""Modulus, remainder and largest value of the width in each shape with many rows. Other code often handles many rows
at once, and a third kind of code the corner of two tails. The width is even in some; other axes are odd."""
MOST_CORNER_FLOPS = 2**29
"""Floating-point operations of such a call, at most; a public shape may have more. Chosen: with heads of three
numbers, attention keeps 45 million scores, a fifth of a GiB, and a plain kernel has several copies."""
WHOLE_TILE = 64
"""Number that divides an axis in whole tiles. Most tiles in use have up to 64 rows or columns."""
WIDTHS, ODD_FREE_RANGE = (32, 1024), (16, 64)
"""Range of widths over many rows, and range of a number n, where 2 n + 1 is the size of a free axis there."""
WIDE, VERY_WIDE = (16_385, 32_768), (98_305, 131_072)
"""Ranges from which wide rows are drawn: wider than a block of threads, or than what a block can hold. The
second one is used if the operation's own workloads are as wide; it lies well beyond what 16 bits count."""
MANY_ROWS_RANGE, MORE_ROWS_RANGE, FEW_COLUMNS, ALIGNED_COLUMNS = (65_537, 67_500), (67_600, 70_000), 5, 16
"""Ranges of two numbers of rows, and a width for each. A row's number then exceeds 16 bits and a grid's second axis.
More rows come after fewer of the same octave, for which a kernel may keep a plan. Kernels often read the second width
by other code than the first."""
INTERPRETED_WIDE, INTERPRETED_LONG, INTERPRETED_ELEMENTS = ((32_769, 65_535), (65_537, 70_000)), (1_057, 1_299), 2**18
"""Ranges of two widths, range of any other axis, and the most elements of an operand, for an interpreter's largest
shapes. Kernels go another way beyond 64 KiB of a row, or beyond eight programs for each of 132 multiprocessors."""
INTERPRETED_TALL, INTERPRETED_TILES = (513, 639), (65, 129)
"""Ranges of the rows and of the last free axis in one more such shape. A last group of eight tiles of 64 rows is then
shorter than others, beside two tiles of columns."""
ALIGNMENT = 128
"""Number of elements that divides one of the wide rows, since kernels often read such rows by other code. 128
elements of one byte fill a GPU's cache line."""
LARGE_ELEMENTS = 2**22
"""Number of elements, rows times all other axes, if the public shape has fewer. Chosen; kernels divide such
work between threads, and more elements cost seconds in each verification."""
MOST_ELEMENTS = 2**20
"""Number of elements of rows times width, at most, for the fixed numbers of rows. Chosen; the host draws and judges
every element of ten such shapes."""
MOST_DRAWN = 2**23
"""Number of elements in the largest operand, at most, with many rows or a wide row. The host draws and judges every
element; drawing 2^23 normal values took 0.2 s on one core."""


def edge_shapes(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes at known edges of each axis, and at some drawn sizes of free axes."""
    rng, rows, reduced = kernel.rng, kernel.operation.row_axis, kernel.operation.reduced_axis
    small_rows = min(3, kernel.shape[rows])
    of_models = MODEL_WIDTHS if kernel.runner.takes_large_shapes else rng.sample(MODEL_WIDTHS, INTERPRETED_WIDTHS)
    by_reduced: list[Mapping[str, int]] = [
        {**kernel.shape, rows: small_rows, reduced: size} for size in (*EDGES, *of_models)
    ]
    by_reduced += [_with_some_rows(kernel, size) for size in of_models if kernel.runner.takes_large_shapes]
    by_reduced += [{**kernel.shape, rows: 1, reduced: size} for size in MODEL_WIDTHS]
    most = rows_within(kernel.operation, kernel.shape, MOST_ELEMENTS // kernel.shape[reduced])
    by_rows = [{**kernel.shape, rows: count} for count in ROWS if count <= most]
    few = {**kernel.shape, rows: small_rows, reduced: min(log_uniform(rng, *SHORT_SUM), kernel.shape[reduced])}
    free = (*FREE_EDGES, *in_each_octave(rng, 4, MOST_FREE))
    by_free = [{**few, axis: size} for axis in kernel.operation.free_axes for size in free]
    by_free = [shape for shape in by_free if narrowed(kernel.operation, shape) == shape]
    found = (
        *by_reduced,
        *_single_rows(kernel),
        *_with_equal_axes(kernel),
        *by_rows,
        *by_free,
    )
    return [affordable(kernel.operation, shape, kernel.shape) for shape in found]


def _with_some_rows(kernel: LoadedKernel, width: int) -> Mapping[str, int]:
    """Return the public shape with this width and some rows, fewer if they would have too many elements."""
    operation = kernel.operation
    shape = {**kernel.shape, operation.reduced_axis: width}
    most = max(1, min(SOME_ROWS[1], MOST_SOME_ELEMENTS // largest_row(operation, shape)))
    return {**shape, operation.row_axis: log_uniform(kernel.rng, min(SOME_ROWS[0], most), most)}


def _single_rows(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes of one row, as decoding asks them, with every remainder of the width; one other axis varies."""
    rng, operation = kernel.rng, kernel.operation
    remainders = range(SINGLE_ROW_REMAINDERS)
    if not kernel.runner.takes_large_shapes:
        remainders = range(rng.randrange(SINGLE_ROW_REMAINDERS), SINGLE_ROW_REMAINDERS, SINGLE_ROW_REMAINDERS)
    free = {axis: min(FEW_COLUMNS, kernel.shape[axis]) for axis in operation.free_axes}
    shapes: list[Mapping[str, int]] = []
    for remainder, ends in itertools.product(remainders, SINGLE_ROW_FREE if free else SINGLE_ROW_FREE[:1]):
        varied = {rng.choice(operation.free_axes): log_uniform(rng, *ends)} if free else {}
        row = {**kernel.shape, **free, **varied, operation.row_axis: 1}
        column = largest_operand(operation, {**row, operation.reduced_axis: 1})
        widest = max(2 * WIDTHS[0], min(WIDTHS[1], MOST_TALL_ELEMENTS // max(1, column)))
        width = of_class(rng, WIDTHS[0], widest, SINGLE_ROW_REMAINDERS, remainder)
        shapes.append({**row, operation.reduced_axis: width})
    return shapes


def _with_equal_axes(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes in which the rows, the width and the free axes have one size: a power of two, and an odd one."""
    operation, rng = kernel.operation, kernel.rng
    axes = (operation.row_axis, operation.reduced_axis, *operation.free_axes)
    shapes: list[Mapping[str, int]] = []
    # an own operation's weights may have fixed sizes, which no size of an axis makes smaller
    most = max(MOST_EQUAL_ELEMENTS, largest_operand(operation, {**kernel.shape, **dict.fromkeys(axes, 1)}))
    for modulus, remainder in ((1, 0), (2, 1)):
        size = of_class(rng, *EQUAL_RANGE, modulus, remainder)
        while largest_operand(operation, {**kernel.shape, **dict.fromkeys(axes, size)}) > most:
            size -= 1
        size = size | 1 if remainder else 2 ** (size.bit_length() - 1)
        shapes.append({**kernel.shape, **dict.fromkeys(axes, size)})
    return shapes


def drawn_shapes(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes with drawn widths, with drawn numbers of rows, and near the public shape."""
    rng, rows, reduced = kernel.rng, kernel.operation.row_axis, kernel.operation.reduced_axis
    widths = (*in_each_octave(rng, 2, TWO_DRAWS_FROM), *in_each_octave(rng, TWO_DRAWS_FROM, WIDEST, draws=2))
    counts = in_each_octave(rng, 16, MOST_ROWS)
    shapes: list[Mapping[str, int]] = [{**kernel.shape, rows: rng.randint(1, 3), reduced: size} for size in widths]
    for count in counts if kernel.runner.takes_large_shapes else rng.sample(counts[:2], 1):
        width = min(kernel.shape[reduced], log_uniform(rng, *WIDTHS), MOST_TALL_ELEMENTS // count)
        narrow = {**kernel.shape, reduced: max(1, width)}
        shapes.append({**narrow, rows: rows_within(kernel.operation, narrow, count)})
    shapes = [affordable(kernel.operation, shape, kernel.shape, most_elements=MOST_DRAWN) for shape in shapes]
    return [*shapes, *(near_shape(kernel.shape, rows, reduced, rng) for _ in range(NEAR_SHAPES))]


def many_wide_rows(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return a shape for each octave of a number of rows with each octave of wide rows; free axes are short.

    An operation whose operands would be too large there, as with a cache of keys, is asked fewer of them.
    """
    rng, operation = kernel.rng, kernel.operation
    if not kernel.runner.takes_large_shapes:
        return []
    thin = {**kernel.shape, **{axis: min(FEW_COLUMNS, kernel.shape[axis]) for axis in operation.free_axes}}
    shapes: list[Mapping[str, int]] = []
    for ends in _octaves(4, MOST_BOTH):
        for width in in_each_octave(rng, *BOTH_WIDTHS):
            shape = {**thin, operation.row_axis: log_uniform(rng, *ends), operation.reduced_axis: width}
            if largest_operand(operation, shape) <= MOST_BOTH_ELEMENTS:
                shapes.append(affordable(operation, shape, kernel.shape, most_elements=MOST_DRAWN))
    return shapes


def _octaves(low: int, high: int) -> list[tuple[int, int]]:
    return [(2**power + 1, 2 ** (power + 1) - 1) for power in range(low.bit_length() - 1, high.bit_length() - 1)]


def corner_shapes(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes with many rows in which several axes have tails at once; some have whole tiles beside them."""
    operation = kernel.operation
    shapes = [_corner(kernel, *corner) for corner in CORNERS]
    if kernel.runner.takes_large_shapes and operation.free_axes:
        rows, free = operation.row_axis, operation.free_axes
        whole = [_whole(_corner(kernel, *CORNERS[0]), axes) for axes in ((rows,), free)]
        shapes += [shape for shape in whole if largest_operand(operation, shape) <= MOST_ELEMENTS]
    return shapes


def _corner(kernel: LoadedKernel, modulus: int, rest: int, widest: int) -> Mapping[str, int]:
    operation, rng = kernel.operation, kernel.rng
    free = {axis: 2 * rng.randint(*ODD_FREE_RANGE) + 1 for axis in operation.free_axes}
    reduced = {operation.reduced_axis: of_class(rng, WIDTHS[0], widest, modulus, rest)}
    thin = {**kernel.shape, **dict.fromkeys(operation.free_axes, 1), **reduced}
    rows = rows_within(operation, thin, rng.randint(*kernel.runner.corner_rows_range))
    wanted = {**kernel.shape, **free, **reduced, operation.row_axis: rows}
    smaller = affordable(
        operation,
        wanted,
        kernel.shape,
        most_elements=kernel.runner.most_corner_elements,
        most_flops=MOST_CORNER_FLOPS,
    )
    return {**smaller, **{axis: smaller[axis] | 1 for axis in operation.free_axes}}


def _whole(shape: Mapping[str, int], axes: Sequence[str]) -> Mapping[str, int]:
    """Return the shape with these axes extended to whole tiles."""
    return {**shape, **{axis: -(-shape[axis] // WHOLE_TILE) * WHOLE_TILE for axis in axes}}


def wide_rows(operation: Operation) -> tuple[int, int]:
    """Return the range of the widest rows that are asked of an operation."""
    usual = max((workload[operation.reduced_axis] for workload in operation.workloads), default=0)
    return VERY_WIDE if usual >= VERY_WIDE[0] else WIDE


def large_shapes(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes with many rows, with wide rows, and with some millions of elements, as far as they can be drawn.

    Free axes are small in the first four. Then each free axis once gets the length that the rows had, and all have
    size one beside wide rows. An interpreter gets its own few, since these take it minutes.
    """
    if not kernel.runner.takes_large_shapes:
        return _interpreted_large(kernel)
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    wide = kernel.rng.randint(*wide_rows(kernel.operation))
    aligned = of_class(kernel.rng, *wide_rows(kernel.operation), ALIGNMENT, 0)
    many, more = (kernel.rng.randint(*ends) for ends in (MANY_ROWS_RANGE, MORE_ROWS_RANGE))
    narrow = {**kernel.shape, **{axis: min(FEW_COLUMNS, kernel.shape[axis]) for axis in kernel.operation.free_axes}}
    shapes = [
        *(
            _as_drawable(kernel, {**narrow, rows: count, reduced: columns})
            for count, columns in ((many, FEW_COLUMNS), (more, ALIGNED_COLUMNS))
        ),
        *(_as_drawable(kernel, {**narrow, rows: 2, reduced: width}) for width in (wide, aligned)),
        *({**narrow, rows: 2, reduced: FEW_COLUMNS, axis: many} for axis in kernel.operation.free_axes),
    ]
    if kernel.operation.free_axes:
        width = kernel.rng.randint(*wide_rows(kernel.operation))
        shapes.append({**narrow, **dict.fromkeys(kernel.operation.free_axes, 1), rows: 2, reduced: width})
    row = max(1, math.prod({**kernel.shape, rows: 1}.values()))
    large = {**kernel.shape, rows: LARGE_ELEMENTS // row + 1}
    if large[rows] > kernel.shape[rows]:
        shapes.append(large)
    return [shape for shape in shapes if _is_drawable(kernel, shape) and kernel.fits(shape, 1)]


def _interpreted_large(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return a row beyond 2^15 elements and one beyond 2^16, and over 1,000 rows; then each free axis as long."""
    rng, operation = kernel.rng, kernel.operation
    rows, reduced = operation.row_axis, operation.reduced_axis
    thin = {**kernel.shape, **dict.fromkeys(operation.free_axes, 1), rows: 1, reduced: FEW_COLUMNS}
    shapes = [{**thin, reduced: rng.randint(*ends) | 1} for ends in INTERPRETED_WIDE]
    shapes += [{**thin, axis: rng.randint(*INTERPRETED_LONG) | 1} for axis in (rows, *operation.free_axes)]
    if operation.free_axes:
        tall, columns = (rng.randint(*ends) | 1 for ends in (INTERPRETED_TALL, INTERPRETED_TILES))
        shapes.append({**thin, rows: tall, operation.free_axes[-1]: columns})
    return [one for one in shapes if largest_operand(operation, one) <= INTERPRETED_ELEMENTS and kernel.fits(one, 1)]


def _as_drawable(kernel: LoadedKernel, shape: Mapping[str, int]) -> Mapping[str, int]:
    """Return the shape; if its operands are too large, as those of many heads are, set its free axes to one."""
    if _is_drawable(kernel, shape):
        return shape
    return {**shape, **dict.fromkeys(kernel.operation.free_axes, 1)}


def _is_drawable(kernel: LoadedKernel, shape: Mapping[str, int]) -> bool:
    return largest_operand(kernel.operation, shape) <= MOST_DRAWN
