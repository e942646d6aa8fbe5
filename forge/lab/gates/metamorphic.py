"""Do the answers to related questions stand in the relation that the operation declares?

The relation holds between the candidate's own answers, so it needs no oracle. Each answer is also judged against the
oracle. Related answers may differ by rounding: a kernel may choose another code path if values or sizes change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from forge.domain.relation import Additive, Relation, RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import Slots
from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.difference import correct_answer
from forge.lab.gates.gate import Gate
from forge.lab.judge import spread
from forge.lab.observed import Observed
from forge.operations.operation import Expectation

if TYPE_CHECKING:
    import torch

THRESHOLD = "related answers apart by no more than rounding explains"
"""Words for what the gate allows."""
Tensors = tuple["torch.Tensor", ...]


def examine(kernel: LoadedKernel) -> Finding:
    """Ask one question and, for each relation, the questions that it relates to the first."""
    rows = kernel.operation.row_axis
    shape = {**kernel.shape, rows: max(3, min(kernel.shape[rows], 16))}
    furthest = 0.0
    for relation in kernel.operation.relations:
        first = correct_answer(kernel, kernel.case(shape))
        if isinstance(first, Failed):
            return first
        found = _related(kernel, relation, first)
        if isinstance(found, Failed):
            return found
        if not found <= 1:
            return _broken(relation, found, shape)
        furthest = max(furthest, found)
    names = ", ".join(dict.fromkeys(_NAMES[type(relation)] for relation in kernel.operation.relations))
    return Passed(observed=f"{names}: {furthest:.3g} x what rounding explains", threshold=THRESHOLD)


def _related(kernel: LoadedKernel, relation: Relation, first: Observed) -> float | Failed:
    """Return how far the related answers differ, in units of what rounding explains."""
    match relation:
        case RowsIndependent():
            return _one_row_changed(kernel, first)
        case RowsPermuted():
            return _permuted(kernel, first)
        case Scaled():
            return _scaled(kernel, relation, first)
        case Additive():
            return _added(kernel, relation, first)
        case _:
            assert_never(relation)


def _one_row_changed(kernel: LoadedKernel, first: Observed) -> float | Failed:
    rows = kernel.operation.row_axis
    changed = first.case.shape[rows] // 2
    fresh = kernel.case(first.case.shape)
    kept = [row for row in range(first.case.shape[rows]) if row != changed]
    inputs = []
    for spec, tensor, other in zip(kernel.operation.inputs, first.case.inputs, fresh.inputs, strict=True):
        mixed = tensor.clone()
        if rows in spec.axes and not (isinstance(spec.values, Slots)):
            axis = spec.axes.index(rows)
            mixed.narrow(axis, changed, 1).copy_(other.narrow(axis, changed, 1))
        inputs.append(mixed)
    answer = correct_answer(kernel, dataclasses.replace(first.case, inputs=tuple(inputs)))
    if isinstance(answer, Failed):
        return answer
    return _largest_spread(kernel, first, _rows(kernel, answer.outputs, kept), kept)


def _permuted(kernel: LoadedKernel, first: Observed) -> float | Failed:
    import torch

    rows = kernel.operation.row_axis
    count = first.case.shape[rows]
    order = torch.randperm(count, generator=torch.Generator().manual_seed(first.case.seed))
    if order.equal(torch.arange(count)):  # with few rows a random order may move none
        order = order.roll(1)
    inputs = tuple(
        tensor.index_select(spec.axes.index(rows), order) if rows in spec.axes else tensor
        for spec, tensor in zip(kernel.operation.inputs, first.case.inputs, strict=True)
    )
    answer = correct_answer(kernel, dataclasses.replace(first.case, inputs=inputs))
    if isinstance(answer, Failed):
        return answer
    return _largest_spread(kernel, first, _rows(kernel, answer.outputs, order.argsort().tolist()))


def _scaled(kernel: LoadedKernel, relation: Scaled, first: Observed) -> float | Failed:
    operation, case = kernel.operation, first.case
    inputs = tuple(
        tensor * 2.0 ** relation.inputs[spec.name] if spec.name in relation.inputs else tensor
        for spec, tensor in zip(operation.inputs, case.inputs, strict=True)
    )
    scalars = tuple(
        value * 2.0 ** relation.scalars.get(name, 0)
        for name, value in zip(operation.scalars, case.scalars, strict=True)
    )
    answer = correct_answer(kernel, dataclasses.replace(case, inputs=inputs, scalars=scalars))
    if isinstance(answer, Failed):
        return answer
    back = tuple(
        output * 2.0 ** -relation.outputs[spec.name] if relation.outputs[spec.name] else output
        for spec, output in zip(operation.outputs, answer.outputs, strict=True)
    )
    return _largest_spread(kernel, first, back)


def _added(kernel: LoadedKernel, relation: Additive, first: Observed) -> float | Failed:
    """Split the input element by element into two summands with zeros in turn, so that no sum is rounded."""
    import torch

    names = [spec.name for spec in kernel.operation.inputs]
    place = names.index(relation.input)
    whole = first.case.inputs[place]
    generator = torch.Generator().manual_seed(first.case.seed)
    taken = torch.rand(whole.shape, generator=generator) < 0.5
    answers = []
    for mask in (taken, ~taken):
        part = torch.where(mask, whole, torch.zeros_like(whole))
        inputs = (*first.case.inputs[:place], part, *first.case.inputs[place + 1 :])
        answer = correct_answer(kernel, dataclasses.replace(first.case, inputs=inputs))
        if isinstance(answer, Failed):
            return answer
        answers.append(answer)
    summed = tuple(
        (one.double() + other.double()) if spec.name in relation.outputs else kept
        for spec, one, other, kept in zip(
            kernel.operation.outputs, answers[0].outputs, answers[1].outputs, first.outputs, strict=True
        )
    )
    return _largest_spread(kernel, first, summed)


def _rows(kernel: LoadedKernel, outputs: Tensors, chosen: list[int]) -> Tensors:
    import torch

    rows, index = kernel.operation.row_axis, torch.tensor(chosen)
    return tuple(
        output.index_select(spec.axes.index(rows), index) if rows in spec.axes else output
        for spec, output in zip(kernel.operation.outputs, outputs, strict=True)
    )


def _largest_spread(kernel: LoadedKernel, first: Observed, others: Tensors, kept: list[int] | None = None) -> float:
    """Return how far `others` is from the first answer at the rows in `kept`, in units of what rounding explains."""
    chosen = kept if kept is not None else list(range(first.case.shape[kernel.operation.row_axis]))
    firsts = _rows(kernel, first.outputs, chosen)
    furthest = 0.0
    for position, expected in enumerate(kernel.expected(first.case)[0]):
        if isinstance(expected, Expectation):
            sizes = {name: getattr(expected, name) for name in ("value", "scale", "last_factor", "drift")}
            named = {n: _rows_of(kernel, one, position, chosen) for n, one in sizes.items() if one is not None}
            part = dataclasses.replace(expected, **named)
            dtype = kernel.operation.outputs[position].rounded_to(kernel.dtype)
            used = spread(firsts[position], others[position], part, dtype=dtype, policy=kernel.policy)
            furthest = max(furthest, used)
    return furthest


def _rows_of(kernel: LoadedKernel, tensor: torch.Tensor, position: int, chosen: list[int]) -> torch.Tensor:
    import torch

    axes = kernel.operation.outputs[position].axes
    rows = kernel.operation.row_axis
    return tensor.index_select(axes.index(rows), torch.tensor(chosen)) if rows in axes else tensor


_NAMES: dict[type[Relation], str] = {
    RowsIndependent: "rows independent",
    RowsPermuted: "rows permuted",
    Scaled: "scaled",
    Additive: "added",
}


def _broken(relation: Relation, furthest: float, shape: Mapping[str, int]) -> Failed:
    size = ", ".join(f"{axis}={n}" for axis, n in shape.items())
    message = f"{_NAMES[type(relation)]}: answers are {furthest:.3g} x what rounding explains apart, at {size}"
    return Failed(
        reason=Reason(code="INCORRECT_NUMERICAL", message=message),
        observed=f"{furthest:.3g} x what rounding explains",
        threshold=THRESHOLD,
    )


METAMORPHIC = Gate(name="metamorphic", examine=examine, needs=frozenset({"relations"}))
