"""Chooses shapes at which kernels often go another way than at the public one: long rows, many rows, large operands.

Other gates ask such shapes with normal values. Here they are small enough to be asked with every kind of values. An
interpreter gets four of them, and only some kinds of values, since all would take it minutes.
"""

from collections.abc import Mapping

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.inputs.random_sizes import log_uniform, of_class
from forge.lab.inputs.shape_budget import largest_operand

LONG_ROWS, LONG = 3, (4_097, 8_191)
"""Number of long rows, and the range from which their width is drawn. Chosen; kernels change their way of reading a
row at powers of two between 1,024 and 16,384 columns."""
VERY_LONG_ROWS, VERY_LONG = 2, ((8_193, 16_383), (16_385, 24_575))
"""Number of very long rows, and ranges of their widths: those of a block of 16,384 columns, and wider ones. Of two
rows one may lie above zero and one below it. An interpreter is asked the wider ones."""
USUAL = (1_025, 4_096)
"""Range of the width of one more long row that an interpreter is asked; widths of models are within it."""
SHORTEST = 1_025
"""Width from which a row that had to be shortened still counts as long."""
MANY_ROWS, NARROW = (257, 400), (33, 79)
"""Range of a number of rows, and the range from which their width is drawn. A warp has 32 lanes, and blocks of rows
have up to 256."""
MOST_LARGE_ELEMENTS = 2**16
"""Number of elements in a large operand, at most. Chosen; each kind of values then takes some milliseconds."""
LARGE: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = (
    ((64, 100), (513, 640)),
    ((128, 200), (257, 320)),
    ((513, 1500), (33, 79)),
)
"""Ranges of the rows and of the width of large operands, which have 2^15 to 2^16 elements. Kernels start threads, or
take a grid of two axes, from about 2^15 elements on. Tiles have up to 128 rows, and launches up to 512 threads."""
LARGE_FREE = ((128, 200), (128, 256), (33, 79))
"""Ranges of the rows, of one other axis and of the width, for shapes where that axis is long too. Such shapes occur
in products of matrices."""
MOST_FREE = 5
"""Size of any other axis, at most. Chosen; longer ones cost time for each kind of values."""
ONE_SHARE = 0.25
"""Chance that another axis has size one, as with one head of keys. Chosen; a few of the shapes then have it."""
MOST_ELEMENTS = 2**15 - 1
"""Number of elements in an operand, at most. Torch starts threads for larger ones, and their starts take longer than
the work."""
INTERPRETED_ROWS, INTERPRETED_MANY = 2, (265, 299)
"""Number of long rows that an interpreter is asked, for values of both signs, and the range of its many rows. Their
number is odd, so that a last program of several rows isn't full. Kernels for GPUs give a program several rows from
some multiple of their multiprocessors on, as from 264 rows."""
MOST_INTERPRETED_FREE, MOST_INTERPRETED_ELEMENTS = 2, 2**18
"""Size of any other axis, and number of elements in an operand, at most, that an interpreter is asked. Chosen; its
time goes with the number of programs, which rows and other axes multiply, and hardly with the elements of a row."""


def shapes(kernel: LoadedKernel, *, modulus: int = 1, remainder: int = 0) -> list[Mapping[str, int]]:
    """Return the shapes that may be asked: long rows, very long ones, many short ones, and large operands.

    Widths have this remainder. A shape whose operands would be too large becomes shorter; if it is then like the
    usual ones, it is left out. An interpreter gets its own few, of any width.
    """
    if not kernel.runner.takes_large_shapes:
        return _interpreted(kernel)
    operation, rng = kernel.operation, kernel.rng
    row_axis, reduced = operation.row_axis, operation.reduced_axis
    long_rows = (
        (LONG_ROWS, LONG, SHORTEST, MOST_ELEMENTS),
        *((VERY_LONG_ROWS, ends, LONG[1], MOST_LARGE_ELEMENTS) for ends in VERY_LONG),
    )
    found: list[Mapping[str, int]] = []
    for count, ends, least, most in long_rows:
        width = of_class(rng, *ends, modulus, remainder)
        wanted = {**_with_short_axes(kernel), row_axis: count, reduced: width}
        shape = _shortened(kernel, wanted, reduced, most=most)
        found += [shape] if shape[reduced] >= least else []
    narrow = of_class(rng, *NARROW, modulus, remainder)
    many = {**_with_short_axes(kernel), row_axis: log_uniform(rng, *MANY_ROWS), reduced: narrow}
    found += [_shortened(kernel, many, row_axis), *_large(kernel)]
    return [shape for shape in kernel.shapes(*found) if shape != kernel.shape and kernel.fits(shape, 1)]


def _interpreted(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return the shapes that an interpreter is asked: long rows, very long ones, and an odd number of short ones."""
    operation, rng = kernel.operation, kernel.rng
    wanted = [(INTERPRETED_ROWS, log_uniform(rng, *ends)) for ends in (USUAL, LONG, VERY_LONG[-1])]
    wanted.append((log_uniform(rng, *INTERPRETED_MANY) | 1, log_uniform(rng, *NARROW)))
    found = [
        {**_with_short_axes(kernel, MOST_INTERPRETED_FREE), operation.row_axis: rows, operation.reduced_axis: width}
        for rows, width in wanted
    ]
    small = [shape for shape in found if largest_operand(operation, shape) <= MOST_INTERPRETED_ELEMENTS]
    return [shape for shape in kernel.shapes(*small) if shape != kernel.shape and kernel.fits(shape, 1)]


def _large(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes with large operands, and one in which another axis is long, unless they had to be shortened."""
    operation, rng = kernel.operation, kernel.rng
    row_axis, reduced = operation.row_axis, operation.reduced_axis
    wanted = [(ends, {row_axis: log_uniform(rng, *ends), reduced: log_uniform(rng, *most)}) for ends, most in LARGE]
    if operation.free_axes:
        size = {rng.choice(operation.free_axes): log_uniform(rng, *LARGE_FREE[1])}
        size |= {row_axis: log_uniform(rng, *LARGE_FREE[0]), reduced: log_uniform(rng, *LARGE_FREE[2])}
        wanted.append((LARGE_FREE[0], size))
    shapes = []
    for (least, _), size in wanted:
        shape = _shortened(kernel, {**_with_short_axes(kernel), **size}, row_axis, most=MOST_LARGE_ELEMENTS)
        shapes += [shape] if shape[row_axis] >= least else []
    return shapes


def quick_shape(kernel: LoadedKernel, rows: int, width: int) -> Mapping[str, int]:
    """Return a shape that can be asked many times: rows of `width` elements, or less if they would be too large."""
    operation = kernel.operation
    wanted = {**_with_short_axes(kernel), operation.row_axis: rows, operation.reduced_axis: width}
    (shape,) = kernel.shapes(_shortened(kernel, wanted, operation.reduced_axis))
    return shape


def _with_short_axes(kernel: LoadedKernel, most: int = MOST_FREE) -> dict[str, int]:
    """Return the public shape with short free axes, mostly as long as they may be; each may be one."""
    shape, rng = dict(kernel.shape), kernel.rng
    for axis in kernel.operation.free_axes:
        shape[axis] = 1 if rng.random() < ONE_SHARE else min(most, shape[axis])
    return shape


def _shortened(
    kernel: LoadedKernel, shape: Mapping[str, int], axis: str, *, most: int = MOST_ELEMENTS
) -> Mapping[str, int]:
    """Return the shape with one axis shortened until each operand has few enough elements."""
    share = most / max(1, largest_operand(kernel.operation, shape))
    return {**shape, axis: max(1, int(shape[axis] * min(1.0, share)))}
