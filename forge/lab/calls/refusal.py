"""What went wrong in one call, as a finding with its numbers and a program that shows it again."""

from __future__ import annotations

import dataclasses
import signal
from typing import TYPE_CHECKING

from forge.domain.evidence import Counterexample
from forge.domain.operation import Operation
from forge.domain.tensors import DType
from forge.domain.verdict import Reason, ReasonCode
from forge.lab.calls.placement import Pages, Placement
from forge.lab.finding import Failed
from forge.lab.judge import Judged
from forge.sandbox.arena import contiguous_strides
from forge.sandbox.reply import Refused, Returned

if TYPE_CHECKING:
    from forge.lab.observed import Case

THRESHOLD = "1 x the bound, every element"
_FAULTS = (signal.SIGSEGV, signal.SIGBUS)
_CLOSED: dict[Pages, tuple[ReasonCode, str]] = {
    "closed_after": ("OUT_OF_BOUNDS", "an access past an input's end: each ended where an unreachable page begins"),
    "closed_before": (
        "OUT_OF_BOUNDS",
        "an access before an input's start: each began where an unreachable page ends",
    ),
    "read_only": ("INPUT_MUTATED", "a write to an input: their pages were read-only"),
}


def wrong_output(operation: Operation, dtype: DType, entry: str, case: Case, output: str, judged: Judged) -> Failed:
    """One element outside its bound."""
    code: ReasonCode = "INCORRECT_NUMERICAL" if judged.finite else "NON_FINITE"
    message = (
        f"{output}{list(judged.worst)} is {judged.got!r}, expected {judged.expected!r} "
        f"within {judged.allowed_error:.3g}, at {_size(case)} with {case.kind} inputs"
    )
    counterexample = Counterexample(
        shape=dict(case.shape),
        inputs=case.kind,
        output=output,
        index=judged.worst,
        expected=repr(judged.expected),
        got=repr(judged.got),
        allowed_error=repr(judged.allowed_error),
        snippet=_snippet(operation, dtype, entry, case, output, judged),
        seed=case.seed,
    )
    return Failed(
        reason=Reason(code=code, message=message),
        observed=f"{judged.bound_used:.3g} x the bound",
        threshold=THRESHOLD,
        counterexample=counterexample,
        case=case,
    )


def _snippet(operation: Operation, dtype: DType, entry: str, case: Case, output: str, judged: Judged) -> str:
    if operation.own is not None:  # its inputs are drawn beside the reference, in a guest
        seen = f"{output}{list(judged.worst)} was {judged.got!r}, expected {judged.expected!r}"
        return f"# {case.kind} values of seed {case.seed} at {_size(case)}: {seen}\n"
    call = f"{entry}(*inputs, *{case.scalars!r})"
    if output in operation.updates:
        position = [spec.name for spec in operation.inputs].index(output)
        called = f"{call}\ngot = inputs[{position}]"
    else:
        position = [spec.name for spec in operation.returned].index(output)
        called = f"got = {call}" + (f"[{position}]" if len(operation.returned) > 1 else "")
    return (
        "from forge.lab.inputs.draw import draw\n"
        "from forge.operations import find_operation\n"
        f"from kernel import {entry}\n\n"
        f"operation = find_operation({operation.name!r})\n"
        f"inputs = draw(operation, {dict(case.shape)!r}, {dtype!r}, {case.kind!r}, seed={case.seed})\n"
        f"{called}\n"
        f"print(got[{judged.worst!r}], 'expected', {judged.expected!r})\n"
    )


def replayed(wrong: Failed) -> Failed:
    """The wrong answer is an earlier one."""
    message = f"an earlier answer was returned for a new question: {wrong.reason.message}"
    return dataclasses.replace(
        wrong,
        reason=Reason(code="REPLAYED_OUTPUT", message=message),
        observed="an earlier answer, bit for bit",
        threshold="every answer fresh",
    )


def no_answer(refused: Refused, placement: Placement, case: Case) -> Failed:
    """The guest refused or is gone; where pages were closed and it died of one, that says why."""
    reason = refused.reason
    if refused.signal in _FAULTS and placement.pages != "open":
        code, message = _CLOSED[placement.pages]
        reason = Reason(code=code, message=f"{message}; it ended the process, at {_size(case)}")
    return Failed(reason=reason, observed=reason.message, threshold="every call returns", log=refused.log)


def forbidden(code: ReasonCode, message: str, case: Case) -> Failed:
    """Something was touched, or returned in a form, that isn't allowed."""
    reason = Reason(code=code, message=f"{message}, at {_size(case)}")
    return Failed(reason=reason, observed=message, threshold="none")


def other_strides(operation: Operation, case: Case, answer: Returned) -> Failed | None:
    """The refusal of a returned tensor that isn't contiguous; a reference file says nothing of how results lie."""
    if operation.own is not None:
        return None
    for spec, form in zip(operation.returned, answer.outputs, strict=False):
        sizes = spec.sizes(case.shape)
        expected = contiguous_strides(sizes)
        pairs = zip(sizes, form.strides, expected, strict=False)
        if all(sizes) and any(size > 1 and got != want for size, got, want in pairs):
            message = f"the output {spec.name!r} has strides {form.strides}, expected {expected}"
            return forbidden("INCORRECT_STRIDES", message, case)
    return None


def _size(case: Case) -> str:
    return ", ".join(f"{axis}={n}" for axis, n in case.shape.items())
