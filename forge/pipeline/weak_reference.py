"""Refuses a reference file that can't tell known wrong answers from right ones, and says what to change in it."""

import math

from forge.domain.own_operation import Contract
from forge.lab.reference.admission import ONE_PRECISION_LOWER
from forge.lab.reference.infer import Inferred
from forge.pipeline.weak_task import require_strength

STALE = ("the last call's output", "other weights")
"""Names of wrong answers that are right for other inputs or weights."""


def require_strong(inferred: Inferred) -> None:
    """Raise WeakTask if known wrong answers would be accepted, or known right ones refused."""
    contract, admission = inferred.contract, inferred.admission
    why, step = _why_and_step(contract, admission.survivors)
    require_strength(admission, why=why, hint=step)


def _why_and_step(contract: Contract, survivors: tuple[str, ...]) -> tuple[str, str]:
    """Return why known wrong answers pass, and what to change in the reference file: of all reasons the likeliest."""
    clipped = sorted({name.partition(":")[0] for name in survivors if ": clipped at its " in name})
    if clipped and len(clipped) == len({name.partition(":")[0] for name in survivors}):
        return (
            f"get_inputs() seldom draws the ends of the range of {', '.join(clipped)}",
            f"let get_inputs() draw the ends of {', '.join(clipped)} more often, or give --operand its range",
        )
    if contract.dtype != "fp32":
        return (
            _own_errors(contract),
            "--dtype fp32, in which the same file errs less than known wrong answers do",
        )
    if any(math.prod(one.sizes) == 1 for one in contract.results):
        return (
            "one number for all rows hides an error in one of them",
            "return the value of each row (reduction='none') instead of one number for all rows",
        )
    if any(name.endswith(STALE) for name in survivors):
        return (
            "the results differ little from call to call",
            "let get_inputs() draw values that differ more from call to call, or fewer of them for one result",
        )
    if any(name.endswith(ONE_PRECISION_LOWER) for name in survivors):
        return (
            "the bound of so large a sum allows the errors of a lower precision",
            "--constant NAME=N for a smaller sum, or get_inputs() with values of either sign, as by torch.randn",
        )
    return "a few huge values may hide all others", "return values of one size"


def _own_errors(contract: Contract) -> str:
    errors = [one.error for one in contract.results if one.element is None]
    if not errors:
        return f"{contract.dtype} is too coarse to show what they get wrong"
    return f"in {contract.dtype} its own errors count as {max(errors):.2g} of its results' size, which hides these"
