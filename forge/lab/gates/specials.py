"""Are NaN and infinities where the reference has them, and nowhere else?

One special value, a whole row of them, or what a mask leaves of a row, in each operand in turn; rows without stay
right. Masks of finite numbers are asked of operations that are used with them. Subnormal numbers are asked as well:
they may be taken for zeros, and for nothing else. (Not of an interpreter: Triton's gets bf16's wrong.)
"""

import itertools
from collections.abc import Mapping

from forge.domain.evidence import WorkloadErrors
from forge.domain.operation import InputKind
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate
from forge.lab.inputs.shape_budget import narrowed, odd_width
from forge.lab.inputs.special_rows import PATTERNS

KINDS: tuple[InputKind, ...] = ("special_rows", "special_weights", "subnormal")
MASKED_ROWS = 64
"""At least, where masks are asked: a token that is drawn beside a wrong edge shows it in some rows only."""
THRESHOLD = "NaN and infinities as the reference has them, finite elements within the bound"


def examine(kernel: LoadedKernel) -> Finding:
    """Judge each kind at the public width, an odd one and one, with rows for every pattern in every operand.

    Weights are finite at width one: there a norm's other factor is zero but for rounding, and infinity times that is
    NaN or infinite as rounding goes.
    """
    errors: list[WorkloadErrors] = []
    for shape, kind in itertools.product(_shapes(kernel), kinds_of(kernel)):
        if kind == "special_weights" and shape[kernel.operation.reduced_axis] == 1:
            continue
        checked = kernel.check([kernel.case(shape, kind)])
        if isinstance(checked, Failed):
            return checked
        errors += checked
    if kernel.operation.specials == "unspecified":
        left_out = "; the contract leaves NaN and infinities open: not asked"
    else:
        left_out = "; subnormal numbers not asked of an interpreter" if kernel.interpreted else ""
    return Passed(
        observed=f"{len(errors)} calls as the reference{left_out}", threshold=THRESHOLD, errors=tuple(errors)
    )


def kinds_of(kernel: LoadedKernel) -> tuple[InputKind, ...]:
    """The kinds of special values that are asked of an operation."""
    masks: tuple[InputKind, ...] = ("masked",) if kernel.operation.masks else ()
    if kernel.operation.specials == "unspecified":
        return masks
    return (*(kind for kind in KINDS if not (kernel.interpreted and kind == "subnormal")), *masks)


def _shapes(kernel: LoadedKernel) -> tuple[Mapping[str, int], ...]:
    operation = kernel.operation
    count = max(len(operation.activations) * len(PATTERNS) + 1, MASKED_ROWS if operation.masks else 0)
    rows = {**kernel.shape, operation.row_axis: count}
    shapes = (rows, {**rows, operation.reduced_axis: odd_width(kernel.rng)}, {**rows, operation.reduced_axis: 1})
    return tuple(narrowed(operation, shape) for shape in shapes)


SPECIALS = Gate(name="specials", examine=examine, one_call_shows_it=True)
