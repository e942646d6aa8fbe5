"""Are NaN and infinities where the reference has them, and nowhere else?

Each operand in turn gets one special value, a whole row of them, or a row after masking. Rows without special values
must stay correct. Operations that are used with masks of finite numbers are asked with them. Subnormal numbers are
asked as well; a kernel may treat them as zeros, and as nothing else. They aren't asked of an interpreter, since
Triton's interpreter gets bf16's wrong. Nor is NaN in fp8 operands, which it reads as 480.
"""

import itertools
from collections.abc import Mapping

from forge.domain.evidence import WorkloadErrors
from forge.domain.input_kind import InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import other_paths
from forge.lab.gates.gate import Gate
from forge.lab.inputs.shape_budget import narrowed, odd_width
from forge.lab.inputs.special_rows import PATTERNS, are_defined

KINDS: tuple[InputKind, ...] = ("special_rows", "special_weights", "subnormal")
"""Kinds of special values that the gate asks, besides masks."""
MASKED_ROWS = 64
"""Number of rows, at least, if masks are asked. Chosen; a sampled token at a wrong edge shows only in some rows."""
FEW_ROWS_DRAWS = 16
"""Number of draws of special rows where most patterns have no row. Chosen: NaN is in a third of the patterns, so
that 16 draws miss it with a chance of 0.2 %."""
THRESHOLD = "NaN and infinities as the reference has them, finite elements within the bound"
"""Words for what the gate allows."""


def examine(kernel: LoadedKernel) -> Finding:
    """Judge each kind at the public width, at an odd one and at one, with rows for every pattern in every operand.

    Long rows and many rows are asked as well, since kernels often go another way there.

    At width one weights are finite. There the other factor of a norm is zero except for rounding. Infinity times such
    a number is NaN or infinite, depending on how it was rounded.
    """
    errors: list[WorkloadErrors] = []
    for shape, kind in itertools.product(_shapes(kernel), kinds_of(kernel)):
        if kind == "special_weights" and shape[kernel.operation.reduced_axis] == 1:
            continue
        for _ in range(_draws(kernel, shape, kind)):
            checked = kernel.check_alone(kernel.case(shape, kind))
            if isinstance(checked, Failed):
                return checked
            errors += checked
    observed = f"{len(errors)} calls as the reference{_left_out(kernel)}"
    return Passed(observed=observed, threshold=THRESHOLD, errors=tuple(errors))


def kinds_of(kernel: LoadedKernel) -> tuple[InputKind, ...]:
    """Return the kinds of special values that are asked of an operation."""
    masks: tuple[InputKind, ...] = ("masked",) if kernel.operation.masks else ()
    if not are_defined(kernel.operation, keeps_fp8_nan=kernel.runner.keeps_fp8_nan):
        return masks
    return (*(kind for kind in KINDS if kernel.runner.keeps_subnormals or kind != "subnormal"), *masks)


def _draws(kernel: LoadedKernel, shape: Mapping[str, int], kind: InputKind) -> int:
    """Return how often a kind is asked at a shape: several times where the rows are fewer than their patterns."""
    patterns = len(kernel.operation.activations) * len(PATTERNS)
    return FEW_ROWS_DRAWS if kind == "special_rows" and shape[kernel.operation.row_axis] * 4 < patterns else 1


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
        *other_paths.shapes(kernel, rows=count, interpreted=True),
    )


SPECIALS = Gate(
    name="specials", examine=examine, needs=frozenset({"specials"}), one_call_shows_it=True, runs_early=True
)
