"""Does it follow its questions from shape to shape: large, small, large again, in a random order?

A kernel may keep a workspace or a launch plan between calls, for the last shape or for the largest so far. Each shape
comes once after each other one, and once after itself. A kernel may also keep a plan for each of some hundred shapes.
Where other gates are asked in guests of their own, no guest has seen so many, so they are asked here.
"""

from collections.abc import Mapping

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import other_paths
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import log_uniform
from forge.lab.inputs.seeded import Seeded

WIDTHS = (512, 1280)
"""Range from which the width is drawn at random, unless the public width is less. Chosen; wider rows cost time in
each of some dozen calls."""
MANY, AGAIN = 320, 16
"""Number of shapes that are asked once each, and of those that come again. Chosen: caches mostly hold a power of two
up to 256."""
MANY_S = 4.0
"""Seconds that the calls may take. Chosen; a kernel that is compiled for each number of rows would take minutes."""
NARROW = (17, 48)
"""Range from which the width of these shapes is drawn. Chosen; narrow rows are quickly drawn and judged."""


def examine(kernel: LoadedKernel) -> Finding:
    """Ask at a few shapes again and again: first a small one between large ones, then each after each."""
    rows, reduced = kernel.operation.row_axis, kernel.operation.reduced_axis
    width = max(2, min(kernel.shape[reduced], log_uniform(kernel.rng, *WIDTHS)))
    shapes = (
        {**kernel.shape, rows: 2 * max(4, min(kernel.shape[rows], 16)), reduced: width},
        {**kernel.shape, rows: 1, reduced: width // 2 + 1},
        {**kernel.shape, rows: 3, reduced: width},
        {**kernel.shape, rows: 5, reduced: 2 * width + 1},
    )
    order = [0, 1, *_each_after_each(len(shapes), kernel.rng)]
    for position in order:
        checked = kernel.check([kernel.case(shapes[position])])
        if isinstance(checked, Failed):
            return checked
    many = _ask_many(kernel) if kernel.runner.leaves_host_idle else 0
    if isinstance(many, Failed):
        return many
    then = f", then {many} of small ones" if many else ""
    return Passed(
        observed=f"{len(order)} calls around {len(shapes)} shapes{then}",
        threshold="every answer right, whatever came before",
    )


def _ask_many(kernel: LoadedKernel) -> int | Failed:
    """Ask at many shapes while it has time; return the number of calls."""
    left_ns, before = MANY_S * 1e9, kernel.calls
    for shape in _many(kernel):
        checked = kernel.check([kernel.case(shape)])
        if isinstance(checked, Failed):
            return checked
        left_ns -= kernel.undelayed_ns
        if left_ns < 0:
            break
    return kernel.calls - before


def _many(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return small shapes that differ in their number of rows, in a random order, and some of them again."""
    rng, rows = kernel.rng, kernel.operation.row_axis
    narrow = other_paths.quick_shape(kernel, 1, rng.randint(*NARROW))
    shapes = kernel.shapes(*({**narrow, rows: count} for count in rng.sample(range(1, MANY + 1), MANY)))
    return [*shapes, *rng.sample(shapes, min(AGAIN, len(shapes)))]


def _each_after_each(count: int, rng: Seeded) -> list[int]:
    """Return positions in a random order that begins and ends with the first; each comes once after each, and itself.

    It is an Euler tour of all ordered pairs, by Hierholzer's algorithm.
    """
    left = [rng.sample(range(count), count) for _ in range(count)]
    walk, tour = [0], list[int]()
    while walk:
        if left[walk[-1]]:
            walk.append(left[walk[-1]].pop())
        else:
            tour.append(walk.pop())
    return tour


SEQUENCES = Gate(name="sequences", examine=examine, needs=frozenset({"sizes"}))
