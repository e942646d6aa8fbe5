"""Turns a failed call into a finding with its numbers, and with a program that shows the failure again."""

from __future__ import annotations

import dataclasses
import signal
import struct
from typing import TYPE_CHECKING

from forge.domain.evidence import Counterexample
from forge.domain.tensors import DType, TensorSpec
from forge.domain.verdict import Reason, ReasonCode
from forge.errors import EnvironmentUnfit
from forge.lab.calls.placement import Pages, Placement
from forge.lab.definitions import definition_of
from forge.lab.finding import Failed
from forge.lab.judge import JudgedOutput
from forge.lab.judge.wrong_elements import WrongElements, wrong_elements
from forge.operations.operation import Operation
from forge.sandbox.arena import contiguous_strides
from forge.sandbox.reply import Refused, Returned

if TYPE_CHECKING:
    from forge.lab.observed import Case

THRESHOLD = "1 x the bound, every element"
"""Words in which a finding says what was allowed of an answer."""
_FAULT_SIGNALS = (signal.SIGSEGV, signal.SIGBUS)
"""Signals of the system for an access outside the process's memory."""
_BY_SIZE: frozenset[ReasonCode] = frozenset({"RUNTIME_ERROR", "TIMEOUT", "OUT_OF_MEMORY"})
"""Reason codes whose message names the size of the call that has no answer. A domain may leave such sizes out."""
_REFUSAL_BY_PAGES: dict[Pages, tuple[ReasonCode, str]] = {
    "closed_after": ("OUT_OF_BOUNDS", "an access past an input's end: each ended where an unreachable page begins"),
    "closed_before": (
        "OUT_OF_BOUNDS",
        "an access before an input's start: each began where an unreachable page ends",
    ),
    "read_only": ("INPUT_MUTATED", "a write to an input: their pages were read-only"),
}


UNWRITTEN_BYTE = 0x5A
"""Byte that glibc fills new memory with while memory is filled: the complement of the byte that is asked for."""
UNWRITTEN = frozenset(
    struct.unpack(form, content)[0]
    for form, content in (
        ("<f", bytes([UNWRITTEN_BYTE] * 4)),
        ("<e", bytes([UNWRITTEN_BYTE] * 2)),
        ("<f", bytes([0, 0, UNWRITTEN_BYTE, UNWRITTEN_BYTE])),
    )
)
"""Values of elements in fp32, fp16 and bf16 that were never written."""


SMALL_RESULT, ROUNDING_OF_ONE = 2.0**-4, 2.0**-24
"""Size below which a result is small beside 1, and the distance of fp32 numbers just below 1."""
BESIDE_ONE = "a multiple of 2^-24, as exp(x) - 1 in fp32 is; expm1, log1p and tanh of a library keep small results"
"""What is said of a small result whose last digits were lost beside 1."""


def _seen(got: float, expected: float, dtype: DType) -> str:
    """Return a wrong value in nine digits, which tell all fp32 numbers apart, and what it is likely to be."""
    if got in UNWRITTEN:
        return f"{got:.3g}, the filler of memory that was never written"
    small = dtype == "fp32" and 0 < abs(got) < SMALL_RESULT
    lost = small and (got / ROUNDING_OF_ONE).is_integer() and abs(got - expected) <= 4 * ROUNDING_OF_ONE
    return f"{got:.9g} ({BESIDE_ONE})" if lost else f"{got:.9g}"


def wrong_output(
    operation: Operation, dtype: DType, entry: str, case: Case, output: str, judged: JudgedOutput
) -> Failed:
    """Return the refusal of one element outside its bound."""
    code: ReasonCode = "INCORRECT_NUMERICAL" if judged.finite else "NON_FINITE"
    found = _wrong_elements(operation, output, judged)
    seen = _seen(judged.got, judged.expected, dtype)
    message = (
        f"{output}{list(judged.worst)} is {seen}, expected {judged.expected:.9g} "
        f"within {judged.allowed_error:.3g}, at {_size(case)} with {case.kind} inputs"
        f"{f'; {judged.together}' if judged.together else ''}{f'; {found.said}' if found else ''}"
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
        wrong_elements=found.said if found else None,
        wrong_from=found.begins if found else None,
    )
    return Failed(
        reason=Reason(code=code, message=message),
        observed=f"{judged.bound_used:.3g} x the bound",
        threshold=THRESHOLD,
        counterexample=counterexample,
        case=case,
    )


def _wrong_elements(operation: Operation, output: str, judged: JudgedOutput) -> WrongElements | None:
    """Return which elements of an output are wrong; None if its mask wasn't kept."""
    if judged.wrong is None or judged.wrong.dim() == 0:
        return None
    spec = next(one for one in operation.outputs if one.name == output)
    return wrong_elements(judged.wrong, [_axis(spec, place) for place in range(judged.wrong.dim())])


def _axis(spec: TensorSpec, place: int) -> str:
    """Return an axis by its name, if its indices are the operand's own; otherwise by its place."""
    name = spec.axes[place] if place < len(spec.axes) else ""
    is_clear = name.isidentifier() and name not in {*spec.times, *spec.per} and spec.axes.count(name) == 1
    return name if is_clear else f"axis {place}"


def _snippet(operation: Operation, dtype: DType, entry: str, case: Case, output: str, judged: JudgedOutput) -> str:
    if not definition_of(operation).runs_here:  # a guest draws its inputs, beside the reference
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


def earlier_answer(wrong: Failed) -> Failed:
    """Return the refusal of a wrong answer that is an earlier one."""
    why = "the kernel remembers, or doesn't use an argument"
    message = f"an earlier answer was returned for a new question ({why}): {wrong.reason.message}"
    return dataclasses.replace(
        wrong,
        reason=Reason(code="REPLAYED_OUTPUT", message=message),
        observed="an earlier answer, bit for bit",
        threshold="every answer fresh",
    )


def no_answer(refused: Refused, placement: Placement, case: Case | None = None) -> Failed:
    """Return the refusal of a call without an answer.

    If the guest died of a memory fault while pages were closed, the closed pages give the reason. Raise
    EnvironmentUnfit if other work on the machine may have ended the guest, or if the machine lacks what it asked for.
    """
    require_verdict(refused)
    reason = refused.reason
    if case is not None and refused.signal in _FAULT_SIGNALS and placement.pages != "open":
        code, message = _REFUSAL_BY_PAGES[placement.pages]
        reason = Reason(code=code, message=f"{message}; it ended the process, at {_size(case)}")
    observed = reason.message
    if case is not None and reason.code in _BY_SIZE:
        reason = reason.model_copy(update={"message": f"{observed}, at {_size(case)} with {case.kind} inputs"})
    return Failed(
        reason=reason, observed=observed, threshold="every call returns", log=refused.log, raised=refused.raised
    )


def require_verdict(refused: Refused) -> None:
    """Raise EnvironmentUnfit if a guest ended for other work on the machine, or asked for what the machine lacks."""
    if refused.reason.code == "INFRASTRUCTURE":
        raise EnvironmentUnfit(
            f"no verdict: {refused.reason.message}",
            hint="verify it on a GPU, or guard that by a tl.constexpr that the launch sets by x.is_cuda",
        )
    if refused.from_load:
        raise EnvironmentUnfit(
            f"no verdict: {refused.reason.message}", hint="run the command again when less runs here"
        )


def tampered(message: str) -> Failed:
    """Return the refusal of an answer that no honest guest gives."""
    return Failed(reason=Reason(code="TAMPERING", message=message), observed=message, threshold="an honest answer")


def forbidden(code: ReasonCode, message: str, case: Case) -> Failed:
    """Return the refusal of a forbidden write, or of a forbidden form of results."""
    reason = Reason(code=code, message=f"{message}, at {_size(case)}")
    return Failed(reason=reason, observed=message, threshold="none")


def other_strides(operation: Operation, case: Case, answer: Returned) -> Failed | None:
    """Return the refusal of a returned tensor that isn't contiguous, if there is one.

    Results may have any strides if the operation declares no layouts.
    """
    if "layouts" not in definition_of(operation).declares:
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
