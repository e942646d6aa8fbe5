"""Draws shapes for the gate `combinations`: each axis from its own ranges, with sizes of models among them.

Widths and sizes of a head are drawn once for an examination, since a kernel may be compiled for each of them.
"""

from collections.abc import Mapping

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates.chosen_shapes import MODEL_WIDTHS
from forge.lab.gates.telling_sizes import inner_axes
from forge.lab.inputs.random_sizes import CLASSES, log_uniform, of_class
from forge.lab.inputs.seeded import Seeded
from forge.lab.inputs.shape_budget import costs_of

Range = tuple[int, int]
Budget = tuple[int, int, int]
ROWS: tuple[tuple[Range, int], ...] = (
    *(((0, 0), 1), ((1, 1), 12), ((2, 15), 12), ((16, 63), 6), ((64, 1024), 6), ((1025, 4096), 4), ((4097, 8191), 3)),
)
"""Ranges of the number of rows, and how often each comes. One row and few rows are what decoding asks."""
WHOLE_ROWS = 6
"""How often the number of rows is a multiple of `TILE`."""
TILE, MOST_TILED = 64, 1024
"""Number that divides an axis in whole tiles, and the longest such axis."""
FREE: tuple[Range, ...] = ((1, 1), (2, 8), (2, 8), (9, 128), (129, 1025))
"""Ranges of any other axis, each as often as the public size and as a multiple of `TILE`. Few come twice, as heads of
keys and queries that share one."""
INNER = (64, 64, 128, 128, 80, 96, 192, 256)
"""Usual sizes of an axis that kernels hold whole, as a head's; two of them come twice."""
PUBLIC_INNER, OTHER_INNER, MOST_INNER = 4, 4, 264
"""How often the public size of such an axis is among these, the number of other sizes, and the largest of them."""
OF_MODELS, TILED, OTHERS = 6, 3, 6
"""Numbers of widths in an examination: of models, multiples of `TILE`, and any up to `MOST_WIDTH`."""
MOST_WIDTH, LONG_WIDTHS = 16_384, ((16_385, 32_767), (32_769, 98_304))
"""Largest of the other widths, and ranges of two longer ones."""
BUDGETS: tuple[Budget, ...] = ((2**15, 2**23, 10), (2**18, 2**25, 7), (2**21, 2**26, 4))
"""Elements of all operands and floating-point operations, at most, and how often each budget comes. Chosen: large
operands take most of the time, and kernels go another way for them."""
GROWN_FROM = 2**21
"""Number of elements in a budget from which shapes grow until they need a quarter of it."""
WITH_INNER = 4
"""Factor of a small budget where an axis is held whole. Chosen; few other sizes fit beside a head of 128 numbers."""
INTERPRETED_BUDGET, INTERPRETED_ROWS = (2**12, 2**20), 64
"""Budget and most rows of an interpreter, which may run a program for each row."""
SHORT = 8
"""Size of an axis that is halved only if all others are as short: few heads or rows are then still few."""
TILED_SHARE = 0.2
"""Share of the shapes in which the rows, the width and all free axes are multiples of `TILE`."""


class CombinedShapes:
    """Shapes of one examination."""

    def __init__(self, kernel: LoadedKernel) -> None:
        self._kernel, self._rng = kernel, kernel.rng
        self._widths = _widths(kernel.rng)
        self._inner = (*INNER, *(kernel.rng.randint(1, MOST_INNER) for _ in range(OTHER_INNER)))

    def draw(self) -> Mapping[str, int]:
        """Return a shape with each axis drawn by itself, and then made to fit a drawn budget."""
        operation, rng, public = self._kernel.operation, self._rng, self._kernel.shape
        rows, reduced, free = operation.row_axis, operation.reduced_axis, operation.free_axes
        drawn = {axis: rng.choice((*(public[axis],) * PUBLIC_INNER, *self._inner)) for axis in inner_axes(operation)}
        tiled = rng.random() < TILED_SHARE
        if tiled:
            drawn |= {axis: _tiled(rng) for axis in (rows, reduced, *free)}
        else:
            drawn |= {axis: self._free(public[axis]) for axis in free}
            drawn |= {rows: _rows(rng), reduced: rng.choice(self._widths)}
        budgets = BUDGETS[1:] if tiled else BUDGETS
        return self._within({axis: drawn[axis] for axis in public}, budgets, least=TILE if tiled else SHORT)

    def _free(self, public: int) -> int:
        chosen = self._rng.randrange(len(FREE) + 2)
        if chosen < len(FREE):
            return log_uniform(self._rng, *FREE[chosen])
        return public if chosen == len(FREE) else _tiled(self._rng)

    def _within(self, shape: dict[str, int], budgets: tuple[Budget, ...], *, least: int) -> Mapping[str, int]:
        """Halve axes at random, first those that stay at `least`, last those held whole. Grow for a large budget."""
        elements, flops, _ = self._rng.choices(budgets, [often for _, _, often in budgets])[0]
        operation = self._kernel.operation
        elements = min(WITH_INNER * elements, GROWN_FROM) if inner_axes(operation) else elements
        if not self._kernel.runner.takes_large_shapes:
            elements, flops = INTERPRETED_BUDGET
            shape[operation.row_axis] = min(INTERPRETED_ROWS, shape[operation.row_axis])
        outer = [axis for axis in shape if axis not in inner_axes(operation)]
        while elements >= GROWN_FROM and all(shape.values()) and costs_of(operation, shape)[0] < elements // 4:
            axis = self._rng.choice(outer)
            shape[axis] = 2 * shape[axis] + shape[axis] % 2
        while any(cost > most for cost, most in zip(costs_of(operation, shape), (elements, flops), strict=True)):
            long = [axis for axis in outer if shape[axis] >= 2 * least] or [axis for axis in outer if shape[axis] > 1]
            long = long or [axis for axis in shape if shape[axis] > 1]
            if not long:
                break
            shape[self._rng.choice(long)] //= 2
        return shape


def _rows(rng: Seeded) -> int:
    chosen = rng.choices((None, *(ends for ends, _ in ROWS)), (WHOLE_ROWS, *(often for _, often in ROWS)))[0]
    if chosen is None:
        return _tiled(rng)
    return log_uniform(rng, *chosen) if chosen[0] else 0


def _tiled(rng: Seeded) -> int:
    return of_class(rng, TILE, MOST_TILED, TILE, 0)


def _widths(rng: Seeded) -> tuple[int, ...]:
    any_width = (of_class(rng, 1, MOST_WIDTH, *rng.choice(CLASSES)) for _ in range(OTHERS))
    tiled = (of_class(rng, TILE, MOST_WIDTH, TILE, 0) for _ in range(TILED))
    return (
        *rng.sample(MODEL_WIDTHS, OF_MODELS),
        *tiled,
        *any_width,
        *(log_uniform(rng, *ends) for ends in LONG_WIDTHS),
    )
