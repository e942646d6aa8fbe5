"""Known wrong answers, tried at the bound that the reference's error gives; where some pass, at narrower ones.

An exponential of large operands magnifies the rounding of whatever it is computed from, more than the reference's own
way of computing it shows: there the error of operands one rounding off is the bound's, if known wrong answers are
refused by it. A bound is narrowed only where it has to be: a task whose wrong answers are refused as it is keeps its
bound. Both only in fp32: elsewhere the result's own rounding hides what sums with cancellation err by, which honest
kernels may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from forge.domain.evidence import Admission
from forge.domain.operation import Expected, Operation
from forge.domain.own_operation import Contract, Local, Result
from forge.domain.policy import Policy
from forge.lab.reference.admission import Question, admit, coarse
from forge.lab.reference.answers import Answers, Tensors, relative_error
from forge.lab.reference.binding import FACTOR, bound, certain, expectation, least_error, rounded_up
from forge.lab.reference.locality import AROUND, locals_of
from forge.lab.reference.rounding import MOST_MAGNIFIED, ROUNDINGS_BEFORE, nearby
from forge.operations.own import own_operation
from forge.sandbox.reply import Refused


def tried(answers: Answers, source: bytes, cases: Sequence[Tensors], policy: Policy) -> Admission:
    """Try the reference at these draws; the bound that will do is the contract's from now on."""
    frozen = answers.contract
    live = bound(own_operation(frozen, source), answers, policy)
    questions = tuple(_question(answers, live, cases, place) for place in range(len(cases)))
    own: Admission | None = None
    for results in _bounds(answers, questions):
        contract = frozen.model_copy(update={"results": results})
        asked = tuple(replace(one, expected=_expected(contract, one, policy)) for one in questions)
        found = admit(own_operation(contract, source), asked, contract.dtype, policy)
        if not found.survivors and not found.refused:
            answers.contract = contract
            return found
        if results == frozen.results:
            own = found
            if not found.survivors:  # what is right was refused: no narrower bound mends that
                break
    assert own is not None
    return own


def _bounds(answers: Answers, questions: Sequence[Question]) -> Iterator[tuple[Result, ...]]:
    """The results with each bound that may do, widest first; the reference's own error is always among them."""
    contract = answers.contract
    beside = _nearby(answers, questions) if contract.wide and contract.dtype == "fp32" else None
    if beside is None:
        yield contract.results
        return
    wide = _magnified(contract, questions, beside)
    bases = (contract.results,) if wide == contract.results else (wide, contract.results)
    for results in bases:
        yield results
        yield from _narrowed(contract.model_copy(update={"results": results}), questions, beside)


def _nearby(answers: Answers, questions: Sequence[Question]) -> list[Tensors] | None:
    """What the reference answers in fp64 where every operand is one rounding off."""
    found: list[Tensors] = []
    for question in questions:
        for beside in nearby(answers, question.inputs, answers.contract.batch):
            if isinstance(beside, Refused):
                return None
            found.append(beside)
    return found


def _question(answers: Answers, live: Operation, cases: Sequence[Tensors], place: int) -> Question:
    contract, case = answers.contract, cases[place]
    count = len(contract.tensors)
    other = cases[(place + 1) % len(cases)]
    reference = live.reference(*case)
    assert isinstance(reference, tuple)

    def asked(inputs: Tensors) -> Tensors:
        return certain(answers.asked("module", inputs, contract.batch))

    return Question(
        inputs=case,
        reference=reference,
        expected=live.oracle(*case),
        earlier=asked((*other[:count], *case[count:])),
        other_weights=asked((*case[:count], *other[count:])),
        coarse=asked(tuple(coarse(one, contract.dtype) for one in case)),
    )


def _expected(contract: Contract, question: Question, policy: Policy) -> tuple[Expected, ...]:
    pairs = zip(contract.results, question.expected, strict=True)
    return tuple(expectation(contract, result, one.value, policy) for result, one in pairs)


def _magnified(contract: Contract, questions: Sequence[Question], nearby: Sequence[Tensors]) -> tuple[Result, ...]:
    """The results with the errors of operands one rounding off, where those are larger, and not too large."""
    found = []
    for place, result in enumerate(contract.results):
        error = 0.0
        if result.element is None:
            pairs = zip(questions, nearby, strict=True)
            error = max(relative_error(near[place], one.expected[place].value, dtype="fp32") for one, near in pairs)
        share = error * ROUNDINGS_BEFORE / FACTOR
        magnified = rounded_up(share) if share <= MOST_MAGNIFIED else 0.0  # nor is it if it is infinite, or NaN
        found.append(result.model_copy(update={"error": max(result.error, magnified)}))
    return tuple(found)


def _narrowed(
    contract: Contract, questions: Sequence[Question], nearby: Sequence[Tensors]
) -> Iterator[tuple[Result, ...]]:
    """The results with bounds that follow the values, of each kind that their errors allow."""
    found = [_locals(contract, place, questions, nearby) for place in range(len(contract.results))]
    for around in AROUND:
        if any(around in locals_here for locals_here in found):
            yield tuple(
                one.model_copy(update={"local": here.get(around)})
                for one, here in zip(contract.results, found, strict=True)
            )


def _locals(
    contract: Contract, place: int, questions: Sequence[Question], nearby: Sequence[Tensors]
) -> dict[str, Local]:
    """What the errors of one result follow: the reference's own, and those of operands one rounding off."""
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
