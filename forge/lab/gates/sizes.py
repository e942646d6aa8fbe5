"""Does it hold at sizes the author wasn't shown: one, primes, around powers of two, drawn by lot, large, held out?"""

import math
import random
from collections.abc import Mapping

from forge.domain.evidence import WorkloadErrors
from forge.domain.tensors import ITEMSIZE_BYTES
from forge.lab import huge
from forge.lab.finding import Failed, Finding, Gate, Passed
from forge.lab.probe import Probe
from forge.lab.room import affordable, narrowed, odd_width, rows_within

REDUCED = (
    *(1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 65, 127, 129, 255, 257, 997, 1023, 1025, 4095, 4097),
    *(6, 12, 20, 100, 512, 1536, 2048, 8192),
)
"""Sizes of the axis that is summed over: a missing tail, mask or remainder loop shows at one of them.

The second line has what the first lacks: even rests of a block of eight, and several whole blocks of any usual size.
"""
FREE = (1, 2, 3, 7, 12, 17, 31, 33, 65, 100, 127, 129, 257, 1025)
"""Sizes of any other axis that may have tails, beside few rows and a short sum."""
SHORT_SUM = 129
ROWS = (0, 1, 2, 3, 5, 8, 13, 64, 256, 257)
BY_LOT = 6
"""Shapes that no list has: sizes up to 4096, small ones as likely as large ones."""
MANY_ODD, MANY, FEWER = 2, (64, 300), (33, 65)
"""Shapes with many rows, of an interpreter fewer, where every other axis is odd too: many rows at once are often
handled by other code, and the corner of two tails by a third."""
ODD_FREE = (16, 64)
"""Half of a free axis there, less one half; shorter where all operands would have more than so many elements:"""
MOST_CORNER = 2**24
WIDE, VERY_WIDE = (16_385, 32_768), (98_305, 131_072)
"""Between these, by lot: wider than a block of threads, or what a block keeps at hand; and, where the operation's own
workloads are, so much wider than 16 bits count that what is looked for lies beyond them too."""
MANY_ROWS, FEW_COLUMNS = 65_537, 5
"""One more than a 16-bit row number, or a grid's second axis, has."""
LARGE_BYTES = 4 * 2**20
"""Of the largest operand, where the public shape is smaller."""
MOST_ELEMENTS = 2**20
MOST_DRAWN = 2**23
"""Elements of the largest operand beside many rows or a wide one."""


def examine(probe: Probe) -> Finding:
    """Judge each shape once; the smallest that fails is the counterexample."""
    shapes = sorted(
        (*_odd_shapes(probe), *_by_lot(probe), *_many_odd(probe), *_large(probe), *probe.held_out),
        key=lambda shape: (_elements(shape), sorted(shape.items())),
    )
    errors: list[WorkloadErrors] = []
    for shape in shapes:
        checked = probe.check([probe.case(shape)])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    past = "large shapes not asked of an interpreter" if probe.interpreted else huge.ask(probe)
    if isinstance(past, Failed):
        return past
    worst = max(e.bound_used for e in errors)
    return Passed(
        observed=f"{worst:.3g} x the bound over {len(shapes)} shapes, {len(probe.held_out)} of them held out; {past}",
        threshold="1 x the bound at every shape",
        errors=tuple(errors),
    )


def _odd_shapes(probe: Probe) -> list[Mapping[str, int]]:
    rows, reduced = probe.operation.row_axis, probe.operation.reduced_axis
    small_rows = min(3, probe.shape[rows])
    by_reduced = [{**probe.shape, rows: small_rows, reduced: size} for size in REDUCED]
    most = rows_within(probe.operation, probe.shape, MOST_ELEMENTS // probe.shape[reduced])
    by_rows = [{**probe.shape, rows: count} for count in ROWS if count <= most]
    few = {**probe.shape, rows: small_rows, reduced: min(SHORT_SUM, probe.shape[reduced])}
    by_free = [{**few, axis: size} for axis in probe.operation.free_axes for size in FREE]
    by_free = [shape for shape in by_free if narrowed(probe.operation, shape) == shape]
    return [affordable(probe.operation, shape, probe.shape) for shape in (*by_reduced, *by_rows, *by_free)]


def _by_lot(probe: Probe) -> list[Mapping[str, int]]:
    rows, reduced = probe.operation.row_axis, probe.operation.reduced_axis
    lot = random.SystemRandom()
    drawn = [{**probe.shape, rows: lot.randint(1, 9), reduced: int(2 ** lot.uniform(1, 12))} for _ in range(BY_LOT)]
    return [affordable(probe.operation, shape, probe.shape) for shape in drawn]


def _many_odd(probe: Probe) -> list[Mapping[str, int]]:
    operation, lot = probe.operation, random.SystemRandom()
    shapes: list[Mapping[str, int]] = []
    for _ in range(MANY_ODD):
        free = {axis: 2 * lot.randint(*ODD_FREE) + 1 for axis in operation.free_axes}
        reduced = {operation.reduced_axis: odd_width()}
        thin = {**probe.shape, **dict.fromkeys(operation.free_axes, 1), **reduced}
        rows = rows_within(operation, thin, lot.randint(*(FEWER if probe.interpreted else MANY)))
        wanted = {**probe.shape, **free, **reduced, operation.row_axis: rows}
        smaller = affordable(operation, wanted, probe.shape, most_elements=MOST_CORNER)
        shapes.append({**smaller, **{axis: smaller[axis] | 1 for axis in operation.free_axes}})
    return shapes


def _large(probe: Probe) -> list[Mapping[str, int]]:
    """Many rows, a wide row, and an operand of some MiB, where what lies in the other axes leaves room for them.

    Free axes are small beside the first two, and as long as there were many rows once each.

    An interpreter takes minutes for all of these.
    """
    if probe.interpreted:
        return []
    rows, reduced = probe.operation.row_axis, probe.operation.reduced_axis
    usual = max((workload[reduced] for workload in probe.operation.workloads), default=0)
    wide = random.SystemRandom().randint(*(VERY_WIDE if usual >= VERY_WIDE[0] else WIDE))
    narrow = {**probe.shape, **{axis: min(FEW_COLUMNS, probe.shape[axis]) for axis in probe.operation.free_axes}}
    shapes = [
        {**narrow, rows: MANY_ROWS, reduced: FEW_COLUMNS},
        _as_drawable(probe, {**narrow, rows: 2, reduced: wide}),
        *({**narrow, rows: 2, reduced: FEW_COLUMNS, axis: MANY_ROWS} for axis in probe.operation.free_axes),
    ]
    row = _elements({**probe.shape, rows: 1})
    large = {**probe.shape, rows: LARGE_BYTES // ITEMSIZE_BYTES[probe.dtype] // row + 1}
    if large[rows] > probe.shape[rows]:
        shapes.append(large)
    return [shape for shape in shapes if _is_drawable(probe, shape) and probe.fits(shape, 1)]


def _as_drawable(probe: Probe, shape: Mapping[str, int]) -> Mapping[str, int]:
    """The shape, with free axes of one where its operands would be too large, as a long cache of keys is."""
    if _is_drawable(probe, shape):
        return shape
    return {**shape, **dict.fromkeys(probe.operation.free_axes, 1)}


def _is_drawable(probe: Probe, shape: Mapping[str, int]) -> bool:
    operands = (*probe.operation.inputs, *probe.operation.returned)
    return max(math.prod(spec.sizes(shape)) for spec in operands) <= MOST_DRAWN


def _elements(shape: Mapping[str, int]) -> int:
    product = 1
    for size in shape.values():
        product *= size
    return product


SIZES = Gate(name="sizes", examine=examine)
