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


def key_function(op: OperationForm, *, devices: bool) -> Callable[..., Key]:
    """Return a function from a call's arguments to all that a choice depends on.

    It is written out for the operation's operands and compiled, since a loop takes three times as long. The last
    eight bits of all addresses together say how they are aligned. Strides matter only in a tensor that isn't
    contiguous. A subclass of a tensor is no tensor: its type is part of the choice. So is whether an operand that is
    written in place shares memory with another one.
    """
    tensors = range(len(op.inputs))
    t, s = [f"t{place}" for place in tensors], [f"s{place}" for place in range(len(op.scalars))]
    parts = [f"{one}.shape" for one in t] + [f"{one}.dtype" for one in t] + [f"type({one})" for one in t]
    parts += [f"{one}.is_contiguous() or {one}.stride()" for one in t]
    parts += [f"{one}.get_device()" for one in t] if devices else []
    parts.append(f"({' | '.join(f'b{place}' for place in tensors)}) & {LOW_BITS}")
    lines = [f"b{place} = t{place}.data_ptr()" for place in tensors]
    written = {place for place, one in enumerate(op.inputs) if one.name in op.updates}
    if written:
        lines += [f"e{place} = b{place} + span_bytes(t{place})" for place in tensors]
        pairs = [(one, other) for other in tensors for one in range(other) if written & {one, other}]
        parts += [" or ".join(f"b{one} < e{other} and b{other} < e{one}" for one, other in pairs)] if pairs else []
    lines.append(f"return ({', '.join(parts + s)},)")
    made: dict[str, Callable[..., Key]] = {}
    code = "\n    ".join([f"def key({', '.join(t + s)}):", *lines])
    exec(code, {"span_bytes": span_bytes}, made)  # noqa: S102 - built from numbers alone
    return made["key"]


def span_bytes(tensor: "torch.Tensor") -> int:
    """Return the number of bytes from a tensor's first element to its last."""
    if tensor.is_contiguous():
        whole: int = tensor.nbytes
        return whole
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size() if tensor.numel() else 0


LOW_BITS = 255
"""Bits of an address that a choice depends on. No instruction asks for more than 128 bytes."""
