"""What torch needs to know of an operation: its signature, and the sizes and types of its outputs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from forge.adopt.described import TORCH_NAMES, Operand, OperationForm

if TYPE_CHECKING:
    import torch


def torch_schema(op: OperationForm) -> str:
    """Return the signature in torch's own form: tensors, then scalars with their defaults."""
    written = {name: f"Tensor({chr(ord('a') + place)}!)" for place, name in enumerate(sorted(op.updates))}
    arguments = [f"{written.get(one.name, 'Tensor')} {one.name}" for one in op.inputs]
    arguments += [f"float {name}={value!r}" for name, value in op.scalars.items()]
    tensors = ", ".join(["Tensor"] * len(op.returned))
    returns = tensors if len(op.returned) == 1 else f"({tensors})"
    return f"{op.op}({', '.join(arguments)}) -> {returns}"


def fake(op: OperationForm, fallback: Callable[..., object]) -> Callable[..., object]:
    """Return a function that gives outputs of the right sizes and types, without values, for tracing.

    Operands with other numbers of dimensions take the fallback when they are called, so it says what they give.
    """

    def traced(*arguments: object) -> object:
        operands: list[torch.Tensor] = list(arguments[: len(op.inputs)])
        if any(given.dim() != len(operand.axes) for operand, given in zip(op.inputs, operands, strict=True)):
            scalars = list(op.scalars.values())[len(arguments) - len(op.inputs) :]
            return fallback(*arguments, *scalars)
        shape = op.read_shape([one.shape for one in operands])
        dtype = call_dtype(op, [one.dtype for one in operands])
        made = [
            operands[0].new_empty(one.sizes(shape), dtype=element_type(one, dtype or operands[0].dtype))
            for one in op.returned
        ]
        return tuple(made) if len(made) != 1 else made[0]

    def traced_in_place(*arguments: object) -> None:
        traced(*arguments)

    return traced if op.returned else traced_in_place


def call_dtype(op: OperationForm, dtypes: "Sequence[torch.dtype]") -> "torch.dtype | None":
    """Return the element type of a call: that of the first operand without a type of its own."""
    return next((given for one, given in zip(op.inputs, dtypes, strict=True) if one.element is None), None)


def element_type(operand: Operand, dtype: "torch.dtype") -> "torch.dtype":
    """Return the type of an operand's elements in a call of this type."""
    import torch

    found: torch.dtype = dtype if operand.element is None else getattr(torch, TORCH_NAMES[operand.element])
    return found
