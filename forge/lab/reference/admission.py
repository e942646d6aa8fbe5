"""Checks that a reference can judge: known wrong answers must be refused, and right ones accepted.

A wrong answer that equals the right one everywhere (one column, rolled) isn't wrong, and isn't counted. The same
holds for one that differs only in values so small for the type that they may be zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from forge.domain.evidence import Admission
from forge.domain.policy import Policy
from forge.domain.tensors import DType, TensorSpec
from forge.lab.judge import SMALLEST_SIZE, judge, plainly_together, plainly_within, within_in_some
from forge.operations.operation import Expectation, Expected, Operation

if TYPE_CHECKING:
    import torch

ONE_PRECISION_LOWER = "one precision lower"
"""Name of the wrong answer whose operands have fewer significant bits."""
FIRST_ELEMENTS = 2**16
"""Number of elements of which answers are compared first: most that differ do so everywhere."""
FEWEST_VALUES = 8
"""Number of nonzero values that a wrong answer leaves out, at least. Chosen; fewer may be small by chance."""
Tensors = tuple["torch.Tensor", ...]


@dataclass(frozen=True)
class AdmissionDraw:
    """One draw, with its right answer and the right answers for other inputs and weights."""

    inputs: Tensors
    reference: Tensors
    expected: tuple[Expected, ...]
    earlier: Tensors
    """Right answer to other inputs with the same weights."""
    other_weights: Tensors
    coarse: Tensors
    """The reference's answer to inputs and weights with fewer significant bits."""


Wrong = Callable[[AdmissionDraw, int], "torch.Tensor | None"]


def admit(operation: Operation, questions: tuple[AdmissionDraw, ...], dtype: DType, policy: Policy) -> Admission:
    """Try every answer that is really wrong, and the right ones."""
    tried = 0
    survivors: list[str] = []
    for place, spec in enumerate(operation.outputs):
        for name, wrong in _WRONG.items():
            outcomes = _outcomes(wrong, questions, place, operation, dtype, policy)
            first = next((outcome for outcome in outcomes if outcome != "equal"), "equal")
            if first == "equal":
                continue
            tried += 1
            if first == "right" and "wrong" not in outcomes:
                survivors.append(f"{spec.name}: {name}")
    refused = tuple(
        name
        for name, answers in _honest(questions)
        if not all(
            _right(one, question, place, operation, dtype, policy)
            for question, outputs in zip(questions, answers, strict=True)
            for place, one in enumerate(outputs)
        )
    )
    return Admission(
        mutants=max(1, tried),
        killed=tried - len(survivors),
        survivors=tuple(survivors),
        honest=2,
        refused=refused,
    )


def _outcomes(
    wrong: Wrong, questions: tuple[AdmissionDraw, ...], place: int, operation: Operation, dtype: DType, policy: Policy
) -> Iterator[Literal["equal", "right", "wrong"]]:
    """Yield for each draw whether the answer equals the right one, would be accepted all the same, or be refused."""
    for question in questions:
        answer = wrong(question, place)
        if answer is None or equal_answers(answer, question.reference[place]):
            yield "equal"
        else:
            yield "right" if _right(answer, question, place, operation, dtype, policy) else "wrong"


def _right(
    got: torch.Tensor, question: AdmissionDraw, place: int, operation: Operation, dtype: DType, policy: Policy
) -> bool:
    return right_answer(
        got, question.expected[place], question.reference[place], operation.outputs[place], dtype, policy
    )


def right_answer(
    got: torch.Tensor, expected: Expected, reference: torch.Tensor, spec: TensorSpec, dtype: DType, policy: Policy
) -> bool:
    """Return whether one output would be accepted; quick looks decide most large ones.

    `got` and `reference` have the sizes of `spec`.
    """
    rounded = spec.rounded_to(dtype)
    if isinstance(expected, Expectation) and got.numel():
        if not within_in_some(got, expected, reference, dtype=rounded, policy=policy):
            return False
        if plainly_within(got, expected, dtype=rounded, policy=policy) and plainly_together(got, expected):
            return True
    return judge(got, expected, reference, dtype=rounded, policy=policy).within


def _honest(questions: tuple[AdmissionDraw, ...]) -> Iterator[tuple[str, list[Tensors]]]:
    yield "the reference", [question.reference for question in questions]
    yield (
        "the oracle, rounded once",
        [
            tuple(one.value.to(right.dtype) for one, right in zip(q.expected, q.reference, strict=True))
            for q in questions
        ],
    )


def equal_answers(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two answers differ at most in values so small for the type that they may be zero.

    Both have the same sizes.
    """

    def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
        return bool(((one == other) | ~_above_smallest(one.double() - other.double(), other.dtype)).all())

    first = slice(FIRST_ELEMENTS)
    return equal(one.reshape(-1)[first], other.reshape(-1)[first]) and equal(one, other)


def _above_smallest(sizes: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return where a value is too large to be taken for zero; the last values of a running product never are."""
    import torch

    return sizes.abs() > 2 * SMALLEST_SIZE["fp16" if dtype == torch.float16 else "fp32"]


def _zeros(question: AdmissionDraw, place: int) -> torch.Tensor:
    import torch

    return torch.zeros_like(question.reference[place])


def _rolled(axis: int) -> Wrong:
    def wrong(question: AdmissionDraw, place: int) -> torch.Tensor | None:
        right = question.reference[place]
        return right.roll(1, axis) if right.dim() else None

    return wrong


def _sign(question: AdmissionDraw, place: int) -> torch.Tensor | None:
    right = question.reference[place]
    return -right if right.is_floating_point() else None


def _more(question: AdmissionDraw, place: int) -> torch.Tensor | None:
    right = question.reference[place]
    return (right.double() * 1.01).to(right.dtype) if right.is_floating_point() else None


def _first_only(question: AdmissionDraw, place: int) -> torch.Tensor | None:
    right = question.reference[place].clone()
    if not right.dim():
        return None
    right[1:] = 0
    return right


def _last_left_out(question: AdmissionDraw, place: int) -> torch.Tensor | None:
    right = question.reference[place].clone()
    if not right.dim() or not right.numel():
        return None
    right[..., -1] = 0
    return right


def _smaller_half_left_out(question: AdmissionDraw, place: int) -> torch.Tensor | None:
    """Return zeros for values up to the median size. A bound set by a few huge values can't see all others."""
    right = question.reference[place].clone()
    sizes = right[_above_smallest(right.double(), right.dtype)].double().abs()
    if not right.is_floating_point() or sizes.numel() < 2 * FEWEST_VALUES:
        return None
    right[right.double().abs() <= sizes.median()] = 0
    return right


def _smallest_slice_left_out(question: AdmissionDraw, place: int) -> torch.Tensor | None:
    """Return zeros for the row, column or channel with the smallest values."""
    right = question.reference[place].clone()
    if not right.is_floating_point():
        return None
    smallest: tuple[float, int, int] | None = None
    for axis in range(right.dim() if right.dim() > 1 else 0):
        others = [one for one in range(right.dim()) if one != axis]
        sizes = right.double().square().mean(others)
        sizes[_above_smallest(right.double(), right.dtype).sum(others) < FEWEST_VALUES] = math.inf
        position = int(sizes.argmin()) if sizes.numel() > 1 else 0
        if sizes.numel() > 1 and (smallest is None or float(sizes[position]) < smallest[0]):
            smallest = float(sizes[position]), axis, position
    if smallest is None or not math.isfinite(smallest[0]):
        return None
    right.select(smallest[1], smallest[2]).zero_()
    return right


def _coarse(question: AdmissionDraw, place: int) -> torch.Tensor | None:
    right = question.coarse[place]
    return right if right.is_floating_point() else None


_WRONG: dict[str, Wrong] = {
    "zeros": _zeros,
    "the last call's output": lambda question, place: question.earlier[place],
    "other weights": lambda question, place: question.other_weights[place],
    "rows permuted": _rolled(0),
    "columns rolled": _rolled(-1),
    "the sign changed": _sign,
    "times 1.01": _more,
    "the first row only": _first_only,
    "the last column left out": _last_left_out,
    "the smaller half left out": _smaller_half_left_out,
    "the smallest row, column or channel left out": _smallest_slice_left_out,
    ONE_PRECISION_LOWER: _coarse,
}
