"""Checks a task before use: its inputs and bound must refuse known wrong answers and accept known right ones.

This runs in pure torch, on the host, before any candidate exists. Wrong answers are made from right ones (mutants),
and the operation adds its own. Right answers are the same mathematics computed in other ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from forge.domain.evidence import Admission
from forge.domain.input_kind import InputKind
from forge.domain.policy import Policy
from forge.domain.tensors import DTYPES, Chance, DType, TensorSpec
from forge.lab.gates.scales import KINDS
from forge.lab.inputs.draw import draw
from forge.lab.judge import judge_kind
from forge.lab.judge.lower_precision import coarse
from forge.lab.judge.reference_call import outputs_of
from forge.operations.operation import Expected, Function, Operation

if TYPE_CHECKING:
    import torch

REDUCED_ROWS, REDUCED_WIDTH, REDUCED_FREE = 4, 129, 6
"""Number of rows, width and length of free axes of the small shape."""
DRAWN_ROWS = 64
"""Number of rows if a row's answer is one position, which says less than a row of numbers. Chosen; each row costs an
answer of the oracle for each mutant."""
NARROW_WIDTH = 1
"""Width of the narrow shape: it has fewer columns than rows, and none besides the last."""
PUBLIC_ELEMENTS = 2**17
"""Number of elements of the public shape, at most; rows are left out to reach it. Chosen; every mutant is computed
and judged at this size."""
_SEED = 20260101
"""Seed of all draws, so that an admission is deterministic."""
_SCALAR_CHANGE = 1000.0
"""Factor on the scalars in the question with other scalars. Chosen; a smaller factor may leave the change of the
answer within the bound."""
Outputs = tuple["torch.Tensor", ...]


@dataclass(frozen=True)
class _Question:
    """One draw, with its right answers."""

    operation: Operation
    kind: InputKind
    inputs: Outputs
    scalars: tuple[float, ...]
    earlier: Outputs
    """Right outputs for other values of the same shape."""
    expected: tuple[Expected, ...]
    reference: Outputs


Answer = Callable[[_Question], Outputs]


def admit(operation: Operation, shape: Mapping[str, int], dtype: DType, policy: Policy) -> Admission:
    """Try every mutant and every honest variant; the result is deterministic."""
    return _admit(operation.name, tuple(sorted(shape.items())), dtype, policy, _OperationKey(operation))


class _OperationKey:
    """An operation as a cache key: equal if it is the same object."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OperationKey) and other.operation is self.operation

    def __hash__(self) -> int:
        return id(self.operation)


@cache
def _admit(_: str, sizes: tuple[tuple[str, int], ...], dtype: DType, policy: Policy, key: _OperationKey) -> Admission:
    operation = key.operation
    questions = tuple(_questions(operation, dict(sizes), dtype))
    mutants = dict(mutants_of(operation, dtype))
    survivors = tuple(name for name, answer in mutants.items() if not _refused(answer, questions, dtype, policy))
    variants = dict(variants_of(operation))
    refused = tuple(name for name, answer in variants.items() if _refused(answer, questions, dtype, policy))
    return Admission(
        mutants=len(mutants),
        killed=len(mutants) - len(survivors),
        survivors=survivors,
        honest=len(variants),
        refused=refused,
    )


def _questions(operation: Operation, shape: Mapping[str, int], dtype: DType) -> Iterator[_Question]:
    """Yield every kind of values at a small shape, another scalar, and the public shape as far as it is quick."""
    rows, width = operation.row_axis, operation.reduced_axis
    free = dict.fromkeys(operation.free_axes, REDUCED_FREE)
    drawn = any(isinstance(spec.values, Chance) for spec in operation.inputs)
    small = {**shape, **free, rows: DRAWN_ROWS if drawn else REDUCED_ROWS, width: REDUCED_WIDTH}
    scalars = tuple(operation.scalars.values())
    for number, kind in enumerate(("normal", "uniform", *KINDS)):
        yield _question(operation, small, dtype, kind, scalars, seed=_SEED + number)
    if scalars:
        changed = tuple(0.125 + _SCALAR_CHANGE * value for value in scalars)
        yield _question(operation, small, dtype, "normal", changed, seed=_SEED - 1)
    yield _question(operation, {**small, width: NARROW_WIDTH}, dtype, "normal", scalars, seed=_SEED - 3)
    per_row = max(1, operation.operand_bytes({**shape, rows: 1}, dtype) // 8)
    public = {**shape, rows: max(1, min(shape[rows], PUBLIC_ELEMENTS // per_row))}
    yield _question(operation, public, dtype, "normal", scalars, seed=_SEED - 2)


def _question(
    operation: Operation,
    shape: Mapping[str, int],
    dtype: DType,
    kind: InputKind,
    scalars: tuple[float, ...],
    *,
    seed: int,
) -> _Question:
    inputs = draw(operation, shape, dtype, kind, seed=seed)
    others = draw(operation, shape, dtype, kind, seed=seed + 1000)
    return _Question(
        operation=operation,
        kind=kind,
        inputs=inputs,
        scalars=scalars,
        earlier=outputs_of(operation, operation.reference, others, scalars),
        expected=operation.oracle(*inputs, *scalars),
        reference=outputs_of(operation, operation.reference, inputs, scalars),
    )


def _refused(answer: Answer, questions: tuple[_Question, ...], dtype: DType, policy: Policy) -> bool:
    """Return whether some question shows an answer to be wrong."""
    return any(not _right(answer(question), question, dtype, policy) for question in questions)


def _right(outputs: Outputs, question: _Question, dtype: DType, policy: Policy) -> bool:
    return all(
        judge_kind(
            got,
            expected,
            baseline,
            kind=question.kind,
            specials=question.operation.specials,
            dtype=spec.rounded_to(dtype),
            policy=policy,
        ).within
        for spec, got, expected, baseline in zip(
            question.operation.outputs, outputs, question.expected, question.reference, strict=True
        )
    )


def mutants_of(operation: Operation, dtype: DType) -> Iterator[tuple[str, Answer]]:
    """Yield answers in which one output is wrong and the others are right; then the operation's own mutants."""
    for position, spec in enumerate(operation.outputs):
        is_coarse = spec.element_type(dtype) not in DTYPES
        single = all(spec.at_most.get(axis) == 1 for axis in spec.axes)
        wrongs = {
            **_WRONG,
            **({} if single else _WRONG_IF_SEVERAL),
            **(_WRONG_IF_COARSE if is_coarse else _WRONG_IF_FINE),
        }
        for name, wrong in wrongs.items():
            yield f"{spec.name}: {name}", _one_wrong(position, wrong)
        for place, operand in enumerate(operation.inputs):
            if _form(operand, dtype) == _form(spec, dtype):
                yield f"{spec.name}: a copy of {operand.name}", _one_wrong(position, _copy_of(place))
    yield "one precision lower", lambda question: _lower_precision(operation, question, dtype)
    for name, function in operation.mutants.items():
        yield name, _computed(operation, function)


def _form(spec: TensorSpec, dtype: DType) -> tuple[object, ...]:
    """Return what decides whether one operand could be returned instead of another."""
    return spec.axes, spec.times, spec.per, spec.at_most, spec.element_type(dtype)


def _one_wrong(position: int, wrong: Callable[[_Question, int], torch.Tensor]) -> Answer:
    def answer(question: _Question) -> Outputs:
        outputs = question.reference
        return (*outputs[:position], wrong(question, position), *outputs[position + 1 :])

    return answer


def _copy_of(place: int) -> Callable[[_Question, int], torch.Tensor]:
    return lambda question, _: question.inputs[place]


def _computed(operation: Operation, function: Function) -> Answer:
    return lambda question: outputs_of(operation, function, question.inputs, question.scalars)


def _first_row_only(question: _Question, position: int) -> torch.Tensor:
    kept = question.reference[position].clone()
    kept[1:] = 0
    return kept


def _last_column_zero(question: _Question, position: int) -> torch.Tensor:
    kept = question.reference[position].clone()
    kept[..., -1] = 0
    return kept


_WRONG: dict[str, Callable[[_Question, int], torch.Tensor]] = {
    "zeros": lambda question, i: question.reference[i].new_zeros(question.reference[i].shape),
    "the last call's output": lambda question, i: question.earlier[i],
    "the sign changed": lambda question, i: _times(question.reference[i], -1.0),
    "the last column left out": _last_column_zero,
}
"""Wrong answers for every operation, by name."""
_WRONG_IF_SEVERAL: dict[str, Callable[[_Question, int], torch.Tensor]] = {
    "rows permuted": lambda question, i: question.reference[i].roll(1, 0),
    "columns rolled": lambda question, i: question.reference[i].roll(1, -1),
    "the first row only": _first_row_only,
}
"""Wrong answers for an output of more than one number."""
_WRONG_IF_FINE: dict[str, Callable[[_Question, int], torch.Tensor]] = {
    "times 1.01": lambda question, i: _times(question.reference[i], 1.01),
}
_WRONG_IF_COARSE: dict[str, Callable[[_Question, int], torch.Tensor]] = {
    "times 1.25": lambda question, i: _times(question.reference[i], 1.25),
}
"""Wrong answers for whole numbers and eight-bit types, in which one hundredth more is the same number."""


def _times(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    return (tensor.double() * factor).to(tensor.dtype)


def _lower_precision(operation: Operation, question: _Question, dtype: DType) -> Outputs:
    """Return the reference's outputs for inputs with fewer significant bits, rounded to as many bits as well."""
    inputs = tuple(coarse(tensor, dtype) for tensor in question.inputs)
    return tuple(coarse(one, dtype) for one in outputs_of(operation, operation.reference, inputs, question.scalars))


def variants_of(operation: Operation) -> Iterator[tuple[str, Answer]]:
    """Yield the right answers, which are computed in other ways."""
    yield "the reference", lambda question: question.reference
    yield (
        "fp64, rounded once",
        lambda question: tuple(
            one.value.to(right.dtype) for one, right in zip(question.expected, question.reference, strict=True)
        ),
    )
    for name, function in operation.variants.items():
        yield name, _computed(operation, function)
