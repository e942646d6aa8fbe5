"""Does it hold at sizes the author wasn't shown: one, around powers of two, drawn in each octave, large, held out?

All but known edges are drawn anew for each examination. The operation's listed workloads are asked beside the public
one.
"""

import math
from collections.abc import Mapping

from forge.domain.evidence import WorkloadErrors
from forge.domain.tensors import ITEMSIZE_BYTES
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import large_offsets, listed_workloads
from forge.lab.gates.gate import Gate
from forge.lab.gates.replay import place
from forge.lab.inputs.random_sizes import WIDEST, in_each_octave, log_uniform, near, of_class
from forge.lab.inputs.shape_budget import affordable, narrowed, rows_within

EDGES = (1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 127, 129, 255, 257, 1023, 1025, 4095, 4097)
"""Sizes of the axis that is summed over, beside those that are drawn in each octave: a missing tail, mask or
remainder loop shows at one of them."""
FREE = (1, 2, 3, 7, 17, 31, 33, 65, 127, 129, 257, 1025)
"""Sizes of any other axis that may have tails, beside few rows and a short sum, and some that are drawn:"""
MOST_FREE = 1024
SHORT_SUM = (65, 257)
"""Between these, by lot."""
ROWS = (0, 1, 2, 3, 5, 8, 13, 64, 256, 257)
MOST_ROWS, MOST_TALL = 4096, 2**15
"""Numbers of rows are drawn in each second octave up to here, over so few columns that so many elements
are enough."""
LONG = 1024
"""From here on two widths are drawn in each octave."""
NEAR = 3
"""Shapes near the public one: what an earlier refusal has shown of those held out is worth nothing."""
MANY, FEWER = (64, 300), (33, 65)
"""Shapes with many rows, of an interpreter fewer: many rows at once are often handled by other code, and the corner
of two tails by a third. Every other axis is odd; the width is even in some."""
CORNERS = ((2, 1, 1024), (2, 1, 1024), (4, 2, 192), (16, 8, 192))
"""Modulus and rest of the width, and how wide it is at most."""
WIDTHS, ODD_FREE = (32, 1024), (16, 64)
"""Widths over many rows; and half of a free axis there, less one half, which is shorter where all operands would have
more than so many elements:"""
MOST_CORNER = 2**24
WIDE, VERY_WIDE = (16_385, 32_768), (98_305, 131_072)
"""Between these, by lot: wider than a block of threads, or what a block keeps at hand; and, where the operation's own
workloads are, so much wider than 16 bits count that what is looked for lies beyond them too."""
MANY_ROWS, FEW_COLUMNS = (65_537, 70_000), 5
"""More than a 16-bit row number, or a grid's second axis, has."""
LARGE_BYTES = 4 * 2**20
"""Of the largest operand, where the public shape is smaller."""
MOST_ELEMENTS = 2**20
AGAIN_ELEMENTS, EXCHANGED = 2**17, 0.5
"""Of an operand, from which on a shape is asked again: what costs much may be kept, by its shape, its address or a
few of its elements. As often as that the contents differ in two elements alone."""
MOST_DRAWN = 2**23
"""Elements of the largest operand beside many rows or a wide one."""


def examine(kernel: LoadedKernel) -> Finding:
    """Judge each shape once, large ones again with other contents; the smallest that fails is the counterexample."""
    drawn = (*_edges(kernel), *_drawn(kernel), *_many(kernel), *kernel.held_out)
    large = _large(kernel)
    errors: list[WorkloadErrors] = []
    for shape in sorted((*drawn, *large), key=lambda shape: (_elements(shape), sorted(shape.items()))):
        checked = _asked(kernel, shape, large=shape in large)
        if isinstance(checked, Failed):
            return checked
        errors += checked
    listed = listed_workloads.ask(kernel)
    if isinstance(listed, Failed):
        return listed
    past = "large shapes not asked of an interpreter" if kernel.interpreted else large_offsets.ask(kernel)
    if isinstance(past, Failed):
        return past
    worst = max(e.bound_used for e in errors)
    count = len(drawn) + len(large)
    return Passed(
        observed=f"{worst:.3g} x the bound over {count} shapes, {len(kernel.held_out)} held out; {listed}; {past}",
        threshold="1 x the bound at every shape",
        errors=tuple(errors),
    )


def _asked(kernel: LoadedKernel, shape: Mapping[str, int], *, large: bool) -> tuple[WorkloadErrors, ...] | Failed:
    """Ask at one shape; where it is large once more, at the same addresses: anew, or with two elements exchanged."""
    case = kernel.case(shape)
    checked = kernel.check([case])
    if isinstance(checked, Failed) or kernel.interpreted or not (large or _largest(kernel, shape) >= AGAIN_ELEMENTS):
        return checked
    exchanged = kernel.rng.random() < EXCHANGED
    again = place(case, kernel.rng.randrange(len(case.inputs)), kernel.rng) if exchanged else kernel.case(shape)
    observed = kernel.call([again])
    return observed if isinstance(observed, Failed) else kernel.first_wrong(observed) or checked


def _edges(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Known edges, and what lies between them."""
    rng, rows, reduced = kernel.rng, kernel.operation.row_axis, kernel.operation.reduced_axis
    small_rows = min(3, kernel.shape[rows])
    by_reduced = [{**kernel.shape, rows: small_rows, reduced: size} for size in EDGES]
    most = rows_within(kernel.operation, kernel.shape, MOST_ELEMENTS // kernel.shape[reduced])
    by_rows = [{**kernel.shape, rows: count} for count in ROWS if count <= most]
    few = {**kernel.shape, rows: small_rows, reduced: min(log_uniform(rng, *SHORT_SUM), kernel.shape[reduced])}
    free = (*FREE, *in_each_octave(rng, 4, MOST_FREE))
    by_free = [{**few, axis: size} for axis in kernel.operation.free_axes for size in free]
    by_free = [shape for shape in by_free if narrowed(kernel.operation, shape) == shape]
    return [affordable(kernel.operation, shape, kernel.shape) for shape in (*by_reduced, *by_rows, *by_free)]


def _drawn(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Widths in each octave, numbers of rows in every second one, and shapes near the public one."""
    rng, rows, reduced = kernel.rng, kernel.operation.row_axis, kernel.operation.reduced_axis
    widths = (*in_each_octave(rng, 2, LONG), *in_each_octave(rng, LONG, WIDEST, draws=2))
    counts = in_each_octave(rng, 16, MOST_ROWS)[rng.randrange(2) :: 2]
    shapes: list[Mapping[str, int]] = [{**kernel.shape, rows: rng.randint(1, 3), reduced: size} for size in widths]
    for count in counts[:1] if kernel.interpreted else counts:
        width = min(kernel.shape[reduced], log_uniform(rng, *WIDTHS), MOST_TALL // count)
        narrow = {**kernel.shape, reduced: max(1, width)}
        shapes.append({**narrow, rows: rows_within(kernel.operation, narrow, count)})
    shapes = [affordable(kernel.operation, shape, kernel.shape, most_elements=MOST_DRAWN) for shape in shapes]
    return [*shapes, *(near(kernel.shape, rows, reduced, rng) for _ in range(NEAR))]


def _many(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    operation, rng = kernel.operation, kernel.rng
    shapes: list[Mapping[str, int]] = []
    for modulus, rest, widest in CORNERS:
        free = {axis: 2 * rng.randint(*ODD_FREE) + 1 for axis in operation.free_axes}
        reduced = {operation.reduced_axis: of_class(rng, WIDTHS[0], widest, modulus, rest)}
        thin = {**kernel.shape, **dict.fromkeys(operation.free_axes, 1), **reduced}
        rows = rows_within(operation, thin, rng.randint(*(FEWER if kernel.interpreted else MANY)))
        wanted = {**kernel.shape, **free, **reduced, operation.row_axis: rows}
        smaller = affordable(operation, wanted, kernel.shape, most_elements=MOST_CORNER)
        shapes.append({**smaller, **{axis: smaller[axis] | 1 for axis in operation.free_axes}})
    return shapes


def _large(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Many rows, a wide row, and an operand of some MiB, where what lies in the other axes leaves room for them.

    Free axes are small beside the first two, and as long as there were many rows once each.

    An interpreter takes minutes for all of these.
    """
    if kernel.interpreted:
        return []
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    usual = max((workload[reduced] for workload in kernel.operation.workloads), default=0)
    wide = kernel.rng.randint(*(VERY_WIDE if usual >= VERY_WIDE[0] else WIDE))
    many = kernel.rng.randint(*MANY_ROWS)
    narrow = {**kernel.shape, **{axis: min(FEW_COLUMNS, kernel.shape[axis]) for axis in kernel.operation.free_axes}}
    shapes = [
        {**narrow, rows: many, reduced: FEW_COLUMNS},
        _as_drawable(kernel, {**narrow, rows: 2, reduced: wide}),
        *({**narrow, rows: 2, reduced: FEW_COLUMNS, axis: many} for axis in kernel.operation.free_axes),
    ]
    row = _elements({**kernel.shape, rows: 1})
    large = {**kernel.shape, rows: LARGE_BYTES // ITEMSIZE_BYTES[kernel.dtype] // row + 1}
    if large[rows] > kernel.shape[rows]:
        shapes.append(large)
    return [shape for shape in shapes if _is_drawable(kernel, shape) and kernel.fits(shape, 1)]


def _as_drawable(kernel: LoadedKernel, shape: Mapping[str, int]) -> Mapping[str, int]:
    """The shape, with free axes of one where its operands would be too large, as a long cache of keys is."""
    if _is_drawable(kernel, shape):
        return shape
    return {**shape, **dict.fromkeys(kernel.operation.free_axes, 1)}


def _is_drawable(kernel: LoadedKernel, shape: Mapping[str, int]) -> bool:
    return _largest(kernel, shape) <= MOST_DRAWN


def _largest(kernel: LoadedKernel, shape: Mapping[str, int]) -> int:
    """Elements of the largest operand."""
    return max(math.prod(spec.sizes(shape)) for spec in (*kernel.operation.inputs, *kernel.operation.returned))


def _elements(shape: Mapping[str, int]) -> int:
    product = 1
    for size in shape.values():
        product *= size
    return product


SIZES = Gate(name="sizes", examine=examine, one_call_shows_it=True)
