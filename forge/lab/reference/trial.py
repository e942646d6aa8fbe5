"""Known wrong answers, tried at the bound that the reference's error gives; where some pass, at narrower ones.

A bound is narrowed only where it has to be: a task whose wrong answers are refused as it is keeps its bound. And only
in fp32: elsewhere the result's own rounding hides what sums with cancellation err by, which honest kernels may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from forge.domain.evidence import Admission
from forge.domain.operation import Expected, Operation
from forge.domain.own_operation import Contract, Local, Result
from forge.domain.policy import Policy
from forge.lab.reference.admission import Question, admit, coarse
from forge.lab.reference.answers import Answers, Tensors
from forge.lab.reference.binding import bound, certain, expectation, least_error, rounded_up
from forge.lab.reference.locality import AROUND, locals_of
from forge.operations.own import own_operation
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

ONE_ROUNDING = 2.0**-24
"""Of operands in fp32, up or down: an error that the best of kernels may make on its way."""


def tried(answers: Answers, source: bytes, cases: Sequence[Tensors], policy: Policy) -> Admission:
    """Try the reference at these draws; where only a narrower bound will do, that is the contract's from now on."""
    frozen = answers.contract
    operation = own_operation(frozen, source)
    live = bound(operation, answers, policy)
    questions = tuple(_question(answers, live, cases, place) for place in range(len(cases)))
    found = admit(operation, questions, frozen.dtype, policy)
    narrows = found.survivors and frozen.wide and frozen.dtype == "fp32"
    for results in _narrowed(answers, questions) if narrows else ():
        contract = frozen.model_copy(update={"results": results})
        asked = tuple(replace(one, expected=_expected(contract, one, policy)) for one in questions)
        again = admit(own_operation(contract, source), asked, contract.dtype, policy)
        if not again.survivors and not again.refused:
            answers.contract = contract
            return again
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


def _narrowed(answers: Answers, questions: Sequence[Question]) -> Iterator[tuple[Result, ...]]:
    """The results with bounds that follow the values, of each kind that their errors allow."""
    contract = answers.contract
    nearby: list[Tensors] = []
    for question in questions:
        beside = answers.asked("module_fp64", tuple(map(_one_rounding_off, question.inputs)), contract.batch)
        if isinstance(beside, Refused):
            return
        nearby.append(beside)
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


def _one_rounding_off(tensor: torch.Tensor) -> torch.Tensor:
    """Floats in fp64, each of them up or down by one rounding; by turns that no period of a shape meets."""
    import torch

    if not tensor.is_floating_point():
        return tensor
    generator = torch.Generator().manual_seed(tensor.numel())
    up = torch.rand(tensor.shape, generator=generator) < 0.5
    return tensor.double() * torch.where(up, 1 + ONE_ROUNDING, 1 - ONE_ROUNDING)
