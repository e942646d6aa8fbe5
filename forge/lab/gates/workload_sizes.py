"""Asks at sizes as large as those of listed workloads, drawn anew: kernels go other ways there, by two sizes at once.

At each shape two questions come one after the other, and both answers are kept: a large output may be written to
memory that an earlier one has. Large weights change in their place: costly work on them may be kept.
"""

import itertools
from collections.abc import Mapping

from forge.domain.evidence import WorkloadErrors
from forge.domain.input_kind import InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.gates.chosen_shapes import VERY_WIDE, WIDE
from forge.lab.gates.kinds_in_turn import KindsInTurn
from forge.lab.gates.large_offsets import rows_stand_for_all
from forge.lab.gates.listed_workloads import check_repeated
from forge.lab.gates.long_pairs import BESIDE_INNER, HELD_INNER
from forge.lab.gates.telling_sizes import inner_axes
from forge.lab.inputs.random_sizes import log_uniform
from forge.lab.inputs.shape_budget import costs_of
from forge.operations.operation import Operation

BEYOND = 4
"""Factor by which sizes may exceed those of the listed workloads. Chosen; models grow."""
LEAST_ROWS, LEAST_WIDTH = 9, 256
"""Smallest number of rows, and smallest width. Smaller ones are asked elsewhere, with any size beside them."""
MOST_ELEMENTS, MOST_FLOPS, MOST_ROW_FLOPS, SHAPES = 2**25, 2**29, 2**27, 9
"""Number of elements in all operands, of floating-point operations, of those where a row has no further axis, and of
shapes, at most. Chosen; such a call takes some tenths of a second, and a second where rows are sorted."""
MOST_TWICE_FLOPS = 2**26
"""Floating-point operations where a row has no further axis, up to which a second question comes. Chosen; beyond them
rows are sorted, or have a hundred thousand numbers."""
MOST_ALL_ELEMENTS, MOST_ALL_FLOPS, ALL_SHAPES = 2**23, 2**28, 3
"""Limits of elements, of floating-point operations and of shapes where all rows have to be judged."""
LEAST_SHARE = 0.5
"""Share of these costs that a shape has, at least, unless it has the most rows."""
SHORT_SHARE, LONG_FREE = 0.25, 2**-6
"""Chance that any other axis may be short, and share of its largest size from which it is long. Chosen: most weights
are then as large as a model's."""
FEW_ROWS, SHARING, WEIGHTS = (4, 8), (17, 32), (2049, 3500)
"""Ranges of the rows beside large heads and beside large weights, of queries that share a head, and of sizes of
weights."""
DRAWS = 16
"""Number of draws of the other axes in each octave of the width until some rows are affordable, at most."""


def ask(kernel: LoadedKernel) -> str | Failed:
    """Ask two questions at each shape; return in words what was asked, or the refusal."""
    if not kernel.runner.takes_large_shapes or not kernel.operation.workloads:
        return "no sizes like those of workloads"
    kinds, shapes, weights = KindsInTurn(kernel), _shapes(kernel), _large_weights(kernel)
    questions = [(shape, _kinds_at(kernel, shape, kinds)) for shape in shapes]
    questions += [(shape, ("normal",)) for shape in weights for _ in range(2)]  # in the same memory
    for shape, kinds_asked in questions:
        checked = _check(kernel, shape, kinds_asked)
        if isinstance(checked, Failed):
            return checked
    return f"{len(shapes) + len(weights)} shapes of sizes like theirs"


def _kinds_at(kernel: LoadedKernel, shape: Mapping[str, int], kinds: KindsInTurn) -> tuple[InputKind, ...]:
    costly = not kernel.operation.free_axes and kernel.operation.flops(shape) > MOST_TWICE_FLOPS
    return ("normal",) if costly else ("normal", kinds.at(shape))


def _check(
    kernel: LoadedKernel, shape: Mapping[str, int], kinds: tuple[InputKind, ...]
) -> tuple[WorkloadErrors, ...] | Failed:
    if rows_stand_for_all(kernel.operation):
        return check_repeated(kernel, shape, kinds)
    return kernel.check([kernel.case(shape, kind) for kind in kinds], retain=True)


def _shapes(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return a shape in each octave of the width, with as many rows as are affordable, or at least half of them."""
    operation, rng = kernel.operation, kernel.rng
    most = _most(operation)
    octaves = octaves_to(most[operation.reduced_axis])
    count = SHAPES if rows_stand_for_all(operation) else ALL_SHAPES
    octaves = rng.sample(octaves, min(count, len(octaves)))
    drawn = [*(_in_octave(kernel, low, most) for low in octaves), *_largest_heads(kernel)]
    found: list[Mapping[str, int]] = []
    for shape in drawn:
        if shape is not None and shape not in found and kernel.fits(shape, 2):  # a small domain has few
            found.append(shape)
    return found


def _most(operation: Operation) -> dict[str, int]:
    """Return the largest sizes; rows are no wider than in other questions, since compilers take minutes for them."""
    listed = {axis: max(one[axis] for one in operation.workloads) for axis in operation.axes}
    width = listed[operation.reduced_axis]
    widest = min(max(width, min(BEYOND * width, WIDE[1])), VERY_WIDE[1])
    return {axis: BEYOND * size for axis, size in listed.items()} | {operation.reduced_axis: widest}


def octaves_to(widest: int) -> list[int]:
    """Return where the octaves of the width begin, at least three of them unless rows are shorter than eight."""
    low, begins = max(1, min(LEAST_WIDTH, widest // 8)), list[int]()
    while low < widest:
        begins.append(low)
        low *= 2
    return begins


def _in_octave(kernel: LoadedKernel, low: int, most: Mapping[str, int]) -> Mapping[str, int] | None:
    operation, rng = kernel.operation, kernel.rng
    for _ in range(DRAWS):
        drawn = _others(kernel, most)
        drawn[operation.reduced_axis] = log_uniform(rng, low, min(2 * low - 1, most[operation.reduced_axis]))
        rows = min(most[operation.row_axis], _affordable_rows(operation, drawn, LEAST_SHARE ** rng.random()))
        if rows >= min(LEAST_ROWS, most[operation.row_axis]):
            (shape,) = kernel.shapes({**drawn, operation.row_axis: rows})
            return shape
    return None


def _others(kernel: LoadedKernel, most: Mapping[str, int]) -> dict[str, int]:
    """Draw the axes besides the rows and the width."""
    operation, rng = kernel.operation, kernel.rng
    least = 0.0 if rng.random() < SHORT_SHARE else LONG_FREE
    drawn = {axis: log_uniform(rng, max(1, int(least * most[axis])), most[axis]) for axis in operation.free_axes}
    return drawn | {axis: rng.choice(operation.workloads)[axis] for axis in inner_axes(operation)}


def _large_weights(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return a shape with weights of at least 2^22 elements beside a few rows, if such sizes are usual."""
    operation, rng = kernel.operation, kernel.rng
    most, axes = _most(operation), (operation.reduced_axis, *operation.free_axes[:1])
    if len(axes) < 2 or any(most[axis] < WEIGHTS[1] for axis in axes):
        return []
    sizes = {axis: rng.randint(*WEIGHTS) for axis in axes} | {operation.row_axis: rng.randint(*FEW_ROWS)}
    shapes = kernel.shapes({**kernel.shape, **dict.fromkeys(operation.free_axes, 1), **sizes})
    return [shape for shape in shapes if _is_quick(operation, shape) and kernel.fits(shape, 2)]


def _is_quick(operation: Operation, shape: Mapping[str, int]) -> bool:
    elements, flops = costs_of(operation, shape)
    return elements <= MOST_ELEMENTS and flops <= MOST_FLOPS


def _largest_heads(kernel: LoadedKernel) -> list[Mapping[str, int]]:
    """Return shapes with the largest heads of published models, each shared by many queries.

    There are none on a GPU, where a tile of them may exceed the shared memory that other questions leave free.
    """
    operation, rng = kernel.operation, kernel.rng
    inner = inner_axes(operation)
    if not inner or not operation.free_axes or kernel.runner.leaves_host_idle:
        return []
    *ones, last = operation.free_axes
    wanted: list[Mapping[str, int]] = []
    for axis, size in itertools.product(inner, HELD_INNER):
        shared = {**dict.fromkeys(ones, 1), last: log_uniform(rng, *SHARING), axis: size}
        rest = {operation.row_axis: rng.randint(*FEW_ROWS), operation.reduced_axis: log_uniform(rng, *BESIDE_INNER)}
        wanted.append({**kernel.shape, **shared, **rest})
    return [shape for shape in kernel.shapes(*wanted) if _is_quick(operation, shape)]


def _affordable_rows(operation: Operation, others: Mapping[str, int], share: float) -> int:
    """Return how many rows cost this share of the limits beside these sizes; each row costs the same."""
    limits = (MOST_ELEMENTS, MOST_FLOPS if operation.free_axes else MOST_ROW_FLOPS)
    if not rows_stand_for_all(operation):
        limits = (MOST_ALL_ELEMENTS, MOST_ALL_FLOPS)
    one, two = (costs_of(operation, {**others, operation.row_axis: count}) for count in (1, 2))
    return min(
        1 + int((share * limit - first) / max(1, second - first))
        for limit, first, second in zip(limits, one, two, strict=True)
    )
