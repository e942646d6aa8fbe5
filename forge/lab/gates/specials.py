"""Are NaN and infinities where the reference has them, and nowhere else?

Each operand in turn gets one special value, a whole row of them, or a row after masking. Rows without special values
must stay correct. Operations that are used with masks of finite numbers are asked with them. Subnormal numbers are
asked as well; a kernel may treat them as zeros, and as nothing else. They aren't asked of an interpreter, since
Triton's interpreter gets bf16's wrong. Nor is NaN in fp8 operands, which it reads as 480.
"""

import itertools
from collections.abc import Mapping
from functools import partial

from forge.domain.evidence import WorkloadErrors
from forge.domain.input_kind import InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import configurations, other_paths
from forge.lab.gates.gate import Gate
from forge.lab.inputs.random_sizes import log_uniform
from forge.lab.inputs.shape_budget import largest_operand, narrowed, odd_width
from forge.lab.inputs.special_rows import PATTERNS, are_defined

KINDS: tuple[InputKind, ...] = ("special_rows", "special_weights", "subnormal")
"""Kinds of special values that the gate asks, besides masks."""
MASKED_ROWS = 64
"""Number of rows, at least, if masks are asked. Chosen; a sampled token at a wrong edge shows only in some rows."""
FEW_ROWS_DRAWS = 8
"""Number of draws of masks where rows are few. Chosen: half of the rows have one of two patterns, so that eight draws
of two rows miss them with less than 0.1 %."""
WEIGHTS_DRAWS, INTERPRETED_WEIGHTS_DRAWS = 3, 2
"""Numbers of draws of special weights at each shape, natively and in an interpreter. Each puts one of three special
values into the last place, where a kernel may leave it out."""
ONE_LONG_ROW = (32_769, 65_535)
"""Range of the width of a single row, as of a vocabulary. Each of its draws has one pattern, so there are many."""
MOST_ELEMENTS = 2**20
"""Number of elements in the largest operand with such a row, at most. Chosen; some dozen draws cost a call each."""
THRESHOLD = "NaN and infinities as the reference has them, finite elements within the bound"
"""Words for what the gate allows."""


def examine(kernel: LoadedKernel) -> Finding:
    """Judge each kind at the public width, at an odd one and at one, with rows for every pattern in every operand.

    Long rows and many rows are asked as well, since kernels often go another way there.
    """
    errors: list[WorkloadErrors] = []
    shapes, kinds = _shapes(kernel), kinds_of(kernel)
    for shape, kind in itertools.product(shapes, kinds):
        if not has_answer(kind, shape[kernel.operation.reduced_axis]):
            continue
        for _ in range(_draws(kernel, shape, kind)):
            checked = kernel.check_alone(kernel.case(shape, kind))
            if isinstance(checked, Failed):
                return checked
            errors += checked
    usual_and_odd = itertools.product(shapes[:2], kinds)
    tuned = configurations.ask_each(kernel, [partial(kernel.case, shape, kind) for shape, kind in usual_and_odd])
    if isinstance(tuned, Failed):
        return tuned
    errors += tuned
    observed = f"{len(errors)} calls as the reference{_left_out(kernel)}"
    return Passed(observed=observed, threshold=THRESHOLD, errors=tuple(errors))


def kinds_of(kernel: LoadedKernel) -> tuple[InputKind, ...]:
    """Return the kinds of special values that are asked of an operation."""
    masks: tuple[InputKind, ...] = ("masked",) if kernel.operation.masks else ()
    if not are_defined(kernel.operation, keeps_fp8_nan=kernel.runner.keeps_fp8_nan):
        return masks
    operation = kernel.operation
    left_out = set[InputKind]() if kernel.runner.keeps_subnormals else {"subnormal"}
    left_out |= {"special_weights"} if len(operation.activations) == len(operation.inputs) else set()
    return (*(kind for kind in KINDS if kind not in left_out), *masks)


def has_answer(kind: InputKind, width: int) -> bool:
    """Return whether a kind of special values has one right answer at this width.

    At width one weights must be finite. There the other factor of a norm is zero except for rounding. Infinity times
    such a number is NaN or infinite, depending on how it was rounded.
    """
    return kind != "special_weights" or width > 1


def _draws(kernel: LoadedKernel, shape: Mapping[str, int], kind: InputKind) -> int:
    """Return how often a kind is asked at a shape: several times where one draw doesn't have all of its patterns."""
    rows, patterns = shape[kernel.operation.row_axis], len(kernel.operation.activations) * len(PATTERNS)
    if kind == "special_rows":
        return -(-patterns // rows) if rows * 4 < patterns else 1  # they take turns, so each comes once
    if kind == "special_weights":
        return WEIGHTS_DRAWS if kernel.runner.takes_large_shapes else INTERPRETED_WEIGHTS_DRAWS
    return FEW_ROWS_DRAWS if kind == "masked" and rows * 4 < MASKED_ROWS else 1


def _left_out(kernel: LoadedKernel) -> str:
    """Return which kinds weren't asked, as the end of a sentence."""
    if kernel.operation.specials == "unspecified":
        return "; the contract leaves NaN and infinities open: not asked"
    if not are_defined(kernel.operation, keeps_fp8_nan=kernel.runner.keeps_fp8_nan):
        return "; NaN in fp8 not asked of an interpreter"
    return "; subnormal numbers not asked of an interpreter" if not kernel.runner.keeps_subnormals else ""


def _shapes(kernel: LoadedKernel) -> tuple[Mapping[str, int], ...]:
    operation = kernel.operation
    count = max(len(operation.activations) * len(PATTERNS) + 1, MASKED_ROWS if operation.masks else 0)
    rows = {**kernel.shape, operation.row_axis: count}
    shapes = (rows, {**rows, operation.reduced_axis: odd_width(kernel.rng)}, {**rows, operation.reduced_axis: 1})
    return (
        *(narrowed(operation, shape) for shape in shapes),
        *other_paths.shapes(kernel),
        *_one_long_row(kernel),
    )


def _one_long_row(kernel: LoadedKernel) -> tuple[Mapping[str, int], ...]:
    """Return a single row that is longer than others; an interpreter gets none, since it would take minutes."""
    operation = kernel.operation
    wanted = {**kernel.shape, operation.row_axis: 1, operation.reduced_axis: log_uniform(kernel.rng, *ONE_LONG_ROW)}
    if not kernel.runner.takes_large_shapes or largest_operand(operation, wanted) > MOST_ELEMENTS:
        return ()
    return kernel.shapes(wanted)


SPECIALS = Gate(
    name="specials",
    examine=examine,
    needs=frozenset({"specials"}),
    one_call_shows_it=True,
    runs_early=True,
    beside=True,
)
