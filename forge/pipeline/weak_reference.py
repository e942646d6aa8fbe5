"""Refuses a reference file that can't tell known wrong answers from right ones, and says what to change in it."""

import math

from forge.domain.own_operation import Contract
from forge.lab.reference.admission import ONE_PRECISION_LOWER
from forge.lab.reference.infer import Inferred
from forge.pipeline.create import require_strength

STALE = ("the last call's output", "other weights")
"""Names of wrong answers that are right for other inputs or weights."""


def require_strong(inferred: Inferred) -> None:
    """Raise WeakTask if known wrong answers would be accepted, or known right ones refused."""
    contract, admission = inferred.contract, inferred.admission
    errors = [one.error for one in contract.results if one.element is None]
    why = "its inputs or its bound are too easy"
    if contract.dtype != "fp32" and errors:
        why = f"in {contract.dtype} its own errors count as {max(errors):.2g} of its results' size, which hides these"
    require_strength(admission, why=why, hint=next_step(contract, admission.survivors))


def next_step(contract: Contract, survivors: tuple[str, ...]) -> str:
    """Return what to change in a weak task, the likeliest first."""
    clipped = sorted({name.partition(":")[0] for name in survivors if ": clipped at its " in name})
    if clipped and len(clipped) == len({name.partition(":")[0] for name in survivors}):
        return f"let get_inputs() draw the ends of {', '.join(clipped)} more often, or give --operand its range"
    if contract.dtype != "fp32":
        return "--dtype fp32, in which the same file errs less than known wrong answers do"
    if any(math.prod(one.sizes) == 1 for one in contract.results):
        return "return the value of each row (reduction='none') instead of one number for all rows"
    if any(name.endswith(STALE) for name in survivors):
        return "let get_inputs() draw values that differ more from call to call, or fewer of them for one result"
    if any(name.endswith(ONE_PRECISION_LOWER) for name in survivors):
        return "--constant NAME=N for a smaller sum, or get_inputs() with values of either sign, as by torch.randn"
    return "return values of one size: a few huge ones hide all others"
