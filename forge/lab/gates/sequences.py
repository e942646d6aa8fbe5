"""Does it follow its questions from shape to shape: large, small, large again, in a random order?

A kernel may keep a workspace or a launch plan between calls, for the last shape or for the largest so far. Each shape
comes once after each other one, and once after itself.
"""

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import log_uniform
from forge.lab.inputs.seeded import Seeded

WIDTHS = (512, 1280)
"""Range from which the width is drawn at random, unless the public width is less. Chosen; wider rows cost time in
each of some dozen calls."""


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
    return Passed(
        observed=f"{len(order)} calls around {len(shapes)} shapes",
        threshold="every answer right, whatever came before",
    )


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
