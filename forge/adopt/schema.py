"""What torch needs to know of an operation: its signature, and the sizes and types of its outputs."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from forge.adopt.described import TORCH_NAMES, Operand, OperationForm

if TYPE_CHECKING:
    import torch

Key = tuple[object, ...]


def torch_schema(op: OperationForm) -> str:
    """Return the signature in torch's own form: tensors, then scalars with their defaults."""
    written = {name: f"Tensor({chr(ord('a') + place)}!)" for place, name in enumerate(sorted(op.updates))}
    arguments = [f"{written.get(one.name, 'Tensor')} {one.name}" for one in op.inputs]
    arguments += [f"float {name}={value!r}" for name, value in op.scalars.items()]
    tensors = ", ".join(["Tensor"] * len(op.returned))
    returns = tensors if len(op.returned) == 1 else f"({tensors})"
    return f"{op.op}({', '.join(arguments)}) -> {returns}"


def fake(op: OperationForm) -> Callable[..., object]:
    """Return a function that gives outputs of the right sizes and types, without values, for tracing."""

    def traced(*arguments: object) -> object:
        import torch

        operands: list[torch.Tensor] = list(arguments[: len(op.inputs)])
        for operand, given in zip(op.inputs, operands, strict=True):
            torch._check(
                given.dim() == len(operand.axes),
                lambda operand=operand, given=given: f"{operand.name} has {given.dim()} dimensions",
            )
        shape = op.read_shape([one.shape for one in operands])
        dtype = call_dtype(op, operands)
        made = [
            operands[0].new_empty(one.sizes(shape), dtype=element_type(one, dtype or operands[0].dtype))
            for one in op.returned
        ]
        return tuple(made) if len(made) != 1 else made[0]

    def traced_in_place(*arguments: object) -> None:
        traced(*arguments)

    return traced if op.returned else traced_in_place


def call_dtype(op: OperationForm, operands: "list[torch.Tensor]") -> "torch.dtype | None":
    """Return the element type of a call: that of the first operand without a type of its own."""
    return next((given.dtype for one, given in zip(op.inputs, operands, strict=True) if one.element is None), None)


def element_type(operand: Operand, dtype: "torch.dtype") -> "torch.dtype":
    """Return the type of an operand's elements in a call of this type."""
    import torch

    found: torch.dtype = dtype if operand.element is None else getattr(torch, TORCH_NAMES[operand.element])
    return found


def key_function(tensors: int, scalars: int, *, devices: bool) -> Callable[..., Key]:
    """Return a function from a call's arguments to all that a choice depends on.

    It is written out for the number of tensors and compiled, since a loop takes three times as long. The last eight
    bits of all addresses together say how they are aligned. Strides matter only where a tensor isn't contiguous. A
    subclass of a tensor is no tensor: its type is part of the choice.
    """
    t = [f"t{place}" for place in range(tensors)]
    s = [f"s{place}" for place in range(scalars)]
    parts = [f"{one}.shape" for one in t] + [f"{one}.dtype" for one in t] + [f"type({one})" for one in t]
    parts += [f"{one}.is_contiguous() or {one}.stride()" for one in t]
    parts.append(f"({' | '.join(f'{one}.data_ptr()' for one in t)}) & {LOW_BITS}")
    parts += [f"{one}.get_device()" for one in t] if devices else []
    # built from numbers alone
    found: Callable[..., Key] = eval(f"lambda {', '.join(t + s)}: ({', '.join(parts + s)},)")  # noqa: S307
    return found


LOW_BITS = 255
"""Bits of an address that a choice depends on. No instruction asks for more than 128 bytes."""
