"""Decides if a reference can judge at a kind of values: it is finite, errs little, and keeps more than rounding."""

from __future__ import annotations

from forge.domain.input_kind import InputKind
from forge.domain.own_operation import Contract
from forge.domain.policy import Policy
from forge.domain.tensors import Shape
from forge.lab.judge import judge
from forge.lab.reference.answers import Answers, equal
from forge.lab.reference.binding import errs_within
from forge.lab.reference.cancelled import cancels_too_much
from forge.lab.reference.reference_guest import Function, Tensors
from forge.lab.reference.rounding import ROUNDINGS_BEFORE, magnifies_too_much, nearby, widened
from forge.operations.operation import Exact
from forge.sandbox.reply import Refused

SOUND_DRAWS, SOUND_BYTES = 3, 2**25
"""Number of draws of each kind of values at which the reference must be sound, and their size in bytes, at most. One
is always drawn. Chosen; each costs four calls of the reference."""
SOUND_ERROR = 2.0
"""Multiple of the measured error up to which the reference may err there: a fourth of what a kernel may. Chosen; the
largest of a few draws' errors differs by chance."""
ON_A_GRID: tuple[InputKind, ...] = ("far", "very_far", "overflowing")
"""Kinds whose values are equal or far apart. Equal ones are rounded alike in each kernel."""


OF_EQUAL_ROWS: tuple[InputKind, ...] = ("far_rows",)
"""Kinds whose rows have one value far from zero. A normalisation leaves nothing of it but rounding, in each type."""


def sound_seeds(contract: Contract) -> range:
    """Return the seeds of the draws at which a reference is tried."""
    return range(11, 11 + max(1, min(SOUND_DRAWS, SOUND_BYTES // contract.set_bytes)))


def is_sound(answers: Answers, case: Tensors, shape: Shape, kind: InputKind, policy: Policy) -> bool:
    """Return whether the reference is finite on this case, and errs little more than on values like its own.

    A variance of values near each other has a larger error of its own, which no bound measured elsewhere allows for.
    """
    contract = answers.contract
    got = answers.asked("module", case, shape)
    exact = answers.asked("module_fp64", case, shape) if contract.wide else got
    if isinstance(got, Refused) or isinstance(exact, Refused):
        return False
    return (
        all(
            bool(one.isfinite().all()) and errs_within(contract, result, one, value, times=SOUND_ERROR)
            for result, one, value in zip(contract.results, got, exact, strict=True)
            if result.element is None
        )
        and not magnifies_too_much(exact, answers, case, shape, by_value=kind in ON_A_GRID)
        and not cancels_too_much(exact, answers, case)
        and not (kind in OF_EQUAL_ROWS and _follows_rounding(exact, answers, case, shape))
        and _agrees(got, exact, answers, case, shape, policy)
    )


def why_not_finite(answers: Answers, case: Tensors, shape: Shape) -> str | None:
    """Return why the reference doesn't answer this case with finite numbers, in its type and in fp64; None if so."""
    functions: tuple[Function, ...] = ("module", "module_fp64") if answers.contract.wide else ("module",)
    for function in functions:
        answer = answers.asked(function, case, shape)
        if isinstance(answer, Refused):
            return answer.reason.message
        if not all(bool(one.isfinite().all()) for one in answer if one.is_floating_point()):
            return "it gives NaN or infinity"
    return None


def _follows_rounding(exacts: Tensors, answers: Answers, case: Tensors, shape: Shape) -> bool:
    """Return whether a few roundings of the operands in fp32 change a float result more than the reference errs."""
    contract = answers.contract
    if not contract.wide:
        return False
    (beside,) = nearby(answers, case, shape, part=ROUNDINGS_BEFORE)
    return isinstance(beside, Refused) or not all(
        errs_within(contract, result, near, exact)
        for result, near, exact in zip(contract.results, beside, exacts, strict=True)
        if result.element is None
    )


def _agrees(got: Tensors, exact: Tensors, answers: Answers, case: Tensors, shape: Shape, policy: Policy) -> bool:
    """Return whether the reference's integers are those that it gives in fp64, except for ties."""
    whole = [place for place, one in enumerate(answers.contract.results) if one.element is not None]
    if all(equal(got[place], exact[place]) for place in whole):
        return True
    rules = widened(tuple(map(Exact, exact)), answers, case, shape, policy)
    return all(judge(got[place], rules[place], got[place], dtype="fp32", policy=policy).within for place in whole)
