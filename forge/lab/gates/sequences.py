"""Does it follow its questions from shape to shape: large, small, large again, in a random order?

A kernel may keep a workspace or a launch plan between calls, for the last shape or for the largest one. Each shape
follows each of the others once, and itself once. Then a few shapes grow, as in programs that decode: long rows by a
few columns, many rows by a few rows, and a prompt's past by chunks. A kernel may keep a plan for a range of sizes.

A kernel may also keep a plan for each of some hundred shapes. Beside a GPU each gate that takes long has guests of
its own, none of which is asked so many shapes. There this gate asks them.
"""

from collections.abc import Mapping

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import other_paths
from forge.lab.gates.gate import Gate
from forge.lab.gates.long_pairs import is_quick
from forge.lab.inputs.random_sizes import log_uniform
from forge.lab.inputs.seeded import Seeded

WIDTHS = (512, 1280)
"""Range from which the width is drawn at random, unless the public width is less. Chosen; wider rows cost time in
each of some dozen calls."""
GROWTH = (
    ("width", (1, 4), (4161, 6000), (0, 1, 2, 40)),
    ("rows", (321, 700), (257, 512), (0, 1, 30)),
    ("width", (1026, 1200), (1200, 1300), (0, 64, 1200)),
    ("width", (4, 7), (4161, 6000), (0, 1, 40)),
)
"""Axis that grows, ranges from which the rows and the width are drawn, and the steps by which that axis grows.
Chosen: most of these are within one block of 64, of which kernels make plans."""
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
    walk = [shapes[position] for position in (0, 1, *_each_after_each(len(shapes), kernel.rng))]
    growing = _growing(kernel) if kernel.runner.takes_large_shapes else []
    for shape in (*walk, *growing):
        checked = kernel.check([kernel.case(shape)])
        if isinstance(checked, Failed):
            return checked
    many = _ask_many(kernel) if kernel.runner.leaves_host_idle else 0
    if isinstance(many, Failed):
        return many
    then = f", then {many} of small ones" if many else ""
    grown = f", {len(growing)} of growing ones" if growing else ""
    return Passed(
        observed=f"{len(walk)} calls around {len(shapes)} shapes{grown}{then}",
        threshold="every answer right, whatever came before",
    )


def _growing(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes of which one size grows by the steps of `GROWTH`, where a call takes some tenths of a second."""
    rng, rows, reduced = kernel.rng, kernel.operation.row_axis, kernel.operation.reduced_axis
    grown: list[Mapping[str, int]] = []
    for axis, row_range, width_range, steps in GROWTH:
        start = {**kernel.shape, **dict.fromkeys(kernel.operation.free_axes, 1)}
        start |= {rows: rng.randint(*row_range), reduced: rng.randint(*width_range)}
        sizes = [start[rows if axis == "rows" else reduced] + step for step in steps]
        wanted = [{**start, rows if axis == "rows" else reduced: size} for size in sizes]
        if all(is_quick(kernel.operation, shape) for shape in wanted):
            grown += kernel.shapes(*wanted)
    return [shape for shape in grown if kernel.fits(shape, 1)]


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


SEQUENCES = Gate(name="sequences", examine=examine, needs=frozenset({"sizes"}), beside=True)
