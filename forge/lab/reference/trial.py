"""Tries known wrong answers at the bound that the reference's error gives; if some pass, at narrower bounds.

An exponential of large operands magnifies the rounding of its inputs, more than the reference's own computation
shows. There the bound allows the error of operands one rounding off, if it still refuses known wrong answers. A
reference that sums in fp64 or in a tree shows less than one running sum errs, which is allowed likewise. A bound is
narrowed only if necessary: a task whose wrong answers are already refused keeps its bound. In 16 bits it is never
widened: there the result's own rounding is larger. Honest kernels may err in sums with cancellation. So a bound is
narrowed only where neither the reference nor operands one rounding off show such errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from forge.domain.evidence import Admission
from forge.domain.own_operation import Contract, Local, Result
from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF
from forge.lab.judge.lower_precision import coarse
from forge.lab.reference.admission import AdmissionDraw, admit
from forge.lab.reference.allowed_error import ERROR_FACTOR, least_error
from forge.lab.reference.answers import Answers, relative_error, require_answer
from forge.lab.reference.binding import bound, expectation, rounded_up
from forge.lab.reference.locality import NEIGHBOURHOODS, locals_of
from forge.lab.reference.reference_guest import Tensors
from forge.lab.reference.rounding import MOST_MAGNIFIED_ERROR, ONE_ROUNDING, ROUNDINGS_BEFORE, nearby, widened
from forge.lab.reference.running_sums import with_running_sums
from forge.operations.operation import Expected, Operation
from forge.operations.own import own_operation
from forge.sandbox.reply import Refused


def tried(answers: Answers, source: bytes, cases: Sequence[Tensors], policy: Policy) -> Admission:
    """Try the reference at these draws; the first sufficient bound becomes the contract's."""
    frozen = answers.contract
    live = bound(own_operation(frozen, source), answers, policy)
    questions = tuple(_question(answers, live, cases, place) for place in range(len(cases)))
    own: Admission | None = None
    for results in _bounds(answers, questions):
        contract = frozen.model_copy(update={"results": results})
        asked = tuple(replace(one, expected=_expected(contract, one, policy)) for one in questions)
        operation = own_operation(contract, source)
        found = admit(operation, asked, contract.dtype, policy)
        if found.refused and any(one.element is not None for one in results):
            fair = tuple(replace(one, expected=_with_ties(one, answers, policy)) for one in asked)
            found = found.model_copy(update={"refused": admit(operation, fair, contract.dtype, policy).refused})
        if not found.survivors and not found.refused:
            answers.contract = contract
            return found
        if results == frozen.results:
            own = found
            if not found.survivors:  # a right answer was refused, and no narrower bound can help
                break
    assert own is not None
    return own


def _with_ties(question: AdmissionDraw, answers: Answers, policy: Policy) -> tuple[Expected, ...]:
    """Return the rules by which a right answer's integers are judged: those of numbers that nearly tie may change."""
    return widened(question.expected, answers, question.inputs, answers.contract.shape, policy)


def _bounds(answers: Answers, questions: Sequence[AdmissionDraw]) -> Iterator[tuple[Result, ...]]:
    """Yield the results with each possible bound, widest first; the reference's own error is always among them."""
    contract = answers.contract
    beside = _nearby(answers, questions) if contract.wide else None
    if beside is None:
        yield contract.results
        return
    if contract.dtype != "fp32":
        yield contract.results
        yield from _narrowed(contract, questions, beside)
        return
    wide = _magnified(contract, questions, beside)
    summed = with_running_sums(wide, answers, questions[0].inputs, questions[0].expected)
    for results in dict.fromkeys((summed, wide, contract.results)):
        yield results
        yield from _narrowed(contract.model_copy(update={"results": results}), questions, beside)


def _nearby(answers: Answers, questions: Sequence[AdmissionDraw]) -> list[Tensors] | None:
    """Return the reference's fp64 answers for operands one rounding of the type off; None if it doesn't answer."""
    found: list[Tensors] = []
    roundings = UNIT_ROUNDOFF[answers.contract.dtype] / ONE_ROUNDING
    for question in questions:
        for beside in nearby(answers, question.inputs, answers.contract.shape, part=roundings):
            if isinstance(beside, Refused):
                return None
            found.append(beside)
    return found


def _question(answers: Answers, live: Operation, cases: Sequence[Tensors], place: int) -> AdmissionDraw:
    contract, case = answers.contract, cases[place]
    count = len(contract.tensors)
    other = cases[(place + 1) % len(cases)]
    reference = live.reference(*case)
    assert isinstance(reference, tuple)

    def asked(inputs: Tensors) -> Tensors:
        return require_answer(answers.asked("module", inputs, contract.shape))

    return AdmissionDraw(
        inputs=case,
        reference=reference,
        expected=live.oracle(*case),
        earlier=asked((*other[:count], *case[count:])),
        other_weights=asked((*case[:count], *other[count:])),
        coarse=asked(tuple(coarse(one, contract.dtype) for one in case)),
    )


def _expected(contract: Contract, question: AdmissionDraw, policy: Policy) -> tuple[Expected, ...]:
    pairs = zip(contract.results, question.expected, strict=True)
    return tuple(expectation(contract, result, one.value, policy) for result, one in pairs)


def _magnified(
    contract: Contract, questions: Sequence[AdmissionDraw], nearby: Sequence[Tensors]
) -> tuple[Result, ...]:
    """Return the results with the errors of operands one rounding off, if those are larger, and not too large."""
    found = []
    for place, result in enumerate(contract.results):
        error = 0.0
        if result.element is None:
            pairs = zip(questions, nearby, strict=True)
            error = max(relative_error(near[place], one.expected[place].value, dtype="fp32") for one, near in pairs)
        share = error * ROUNDINGS_BEFORE / ERROR_FACTOR
        magnified = rounded_up(share) if share <= MOST_MAGNIFIED_ERROR else 0.0  # not for inf or NaN
        found.append(result.model_copy(update={"error": max(result.error, magnified)}))
    return tuple(found)


def _narrowed(
    contract: Contract, questions: Sequence[AdmissionDraw], nearby: Sequence[Tensors]
) -> Iterator[tuple[Result, ...]]:
    """Yield the results with bounds that follow the values, for each neighbourhood that their errors allow."""
    found = [_locals(contract, place, questions, nearby) for place in range(len(contract.results))]
    for around in NEIGHBOURHOODS:
        if any(around in locals_here for locals_here in found):
            yield tuple(
                one.model_copy(update={"local": here.get(around)})
                for one, here in zip(contract.results, found, strict=True)
            )


def _locals(
    contract: Contract, place: int, questions: Sequence[AdmissionDraw], nearby: Sequence[Tensors]
) -> dict[str, Local]:
    """Return what one result's errors follow: the reference's own, and those of operands one rounding off."""
    if contract.results[place].element is not None:
        return {}
    exacts = [question.expected[place].value.double() for question in questions]
    errors = [
        (question.reference[place].double() - exact).abs().maximum((beside[place] - exact).abs())
        for question, beside, exact in zip(questions, nearby, exacts, strict=True)
    ]
    least = least_error(contract)
    return {
        one.around: one.model_copy(update={"error": rounded_up(max(one.error, least))})
        for one in locals_of(exacts, errors, contract.dtype)
    }
