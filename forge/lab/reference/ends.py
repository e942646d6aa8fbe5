"""Tries kernels that clip an argument's range at either end: they must be refused, or the task is weak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forge.domain.evidence import Admission
from forge.domain.input_kind import END_KINDS, InputKind
from forge.domain.own_operation import Among, Integers, Operand
from forge.domain.policy import Policy
from forge.lab.reference.admission import equal_answers, right_answer
from forge.lab.reference.answers import Answers
from forge.lab.reference.binding import bound
from forge.lab.reference.drawing import Drawing
from forge.lab.reference.reference_guest import Tensors
from forge.operations.operation import Expected, Operation
from forge.operations.own import own_operation
from forge.sandbox.reply import Refused

if TYPE_CHECKING:
    import torch

PARTS = (64, 8)
"""Divisors of a range of values: where an answer stands with one number clipped, a 64th of the range is clipped, then
an 8th. In a range of a billion numbers, one changes an answer by less than rounding does."""
USUAL_DRAWS: tuple[InputKind, ...] = ("normal", "normal")
"""Kinds of the file's own draws that are tried besides one draw of each kind of ends."""


@dataclass(frozen=True)
class _EndQuestion:
    inputs: Tensors
    reference: Tensors
    expected: tuple[Expected, ...]


def with_ends(admission: Admission, answers: Answers, source: bytes, seed: int, policy: Policy) -> Admission:
    """Return the admission with one more wrong answer for each end of each argument that isn't continuous."""
    contract = answers.contract
    operation = bound(own_operation(contract, source), answers, policy)
    questions = list(_questions(operation, answers, seed))
    tried: list[str] = []
    survivors: list[str] = []
    for place, one in enumerate(contract.tensors):
        if one.continuous or not any(question.inputs[place].numel() for question in questions):
            continue
        for end in ("low", "high"):
            outcome = _clipped_answers(operation, answers, questions, place, one, end, policy)
            tried += [one.name] * (outcome is not None)
            survivors += [f"{one.name}: clipped at its {end} end"] * (outcome is False)
    return admission.model_copy(
        update={
            "mutants": admission.mutants + len(tried),
            "killed": admission.killed + len(tried) - len(survivors),
            "survivors": (*admission.survivors, *survivors),
        }
    )


def _questions(operation: Operation, answers: Answers, seed: int) -> Iterator[_EndQuestion]:
    contract = answers.contract
    draw = Drawing(answers)
    kinds: list[InputKind] = [kind for kind in END_KINDS if kind in contract.kinds]
    for place, kind in enumerate((*kinds, *USUAL_DRAWS)):
        inputs = draw(contract.shape, kind, seed + 41 + place)
        reference = operation.reference(*inputs)
        assert isinstance(reference, tuple)
        yield _EndQuestion(inputs, reference, operation.oracle(*inputs))


def _clipped_answers(
    operation: Operation,
    answers: Answers,
    questions: Sequence[_EndQuestion],
    place: int,
    one: Operand,
    end: str,
    policy: Policy,
) -> bool | None:
    """Return whether clipped values at one end give a refused answer; None if they never give another answer."""
    contract = answers.contract
    differs = False
    for part in (None, *PARTS):
        for question in questions:
            values = question.inputs[place]
            clipped = _clip(values, one, end, part)
            if bool((clipped == values).all()):
                continue
            inputs = (*question.inputs[:place], clipped, *question.inputs[place + 1 :])
            answer = answers.asked("module", inputs, contract.shape)
            if isinstance(answer, Refused):  # the reference has no answer to the clipped values
                continue
            pairs = list(zip(answer, question.reference, strict=True))
            differs = differs or not all(equal_answers(got, right) for got, right in pairs)
            if not all(
                right_answer(got, question.expected[output], right, operation.outputs[output], contract.dtype, policy)
                for output, (got, right) in enumerate(pairs)
            ):
                return True
    return False if differs else None


def _clip(values: torch.Tensor, one: Operand, end: str, part: int | None) -> torch.Tensor:
    """Return the values without those at one end: without one number, or without a part of the range."""
    import torch

    match one.drawn:
        case Among(values=among):
            ordered = sorted(among)
            lowest, highest = (ordered[1], ordered[-1]) if end == "low" else (ordered[0], ordered[-2])
            return values.double().clamp(lowest, highest).to(values.dtype)
        case Integers(low=low, high=high):
            smallest, largest = low, high
        case _ if values.is_floating_point():
            return values
        case _:
            smallest, largest = int(values.min()), int(values.max())
    step = 1 if part is None else max(1, (largest - smallest) // part)
    if end == "low":
        return torch.where(values.long() < smallest + step, smallest + step, values.long()).to(values.dtype)
    return torch.where(values.long() > largest - step, largest - step, values.long()).to(values.dtype)
