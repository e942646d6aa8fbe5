"""Writes a small wrong answer out in full: every value, and a program that needs nothing of Forge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge.domain.evidence import Counterexample, Values
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.inputs.draw import torch_dtype
from forge.lab.observed import Observed

if TYPE_CHECKING:
    import torch

MOST_VALUES = 64
"""Number of values of an operand or a result that is written out, at most. Chosen; a program of more numbers is hard
to read."""


def written_out(kernel: LoadedKernel, observed: Observed, wrong: Counterexample) -> Counterexample:
    """Return the counterexample with its values and its own program, if every operand and the output are small."""
    case = observed.case
    names = [spec.name for spec in kernel.operation.outputs]
    position = names.index(wrong.output)
    got = observed.outputs[position]
    if max(tensor.numel() for tensor in (got, *case.inputs)) > MOST_VALUES:
        return wrong
    expected = kernel.operation.oracle(*case.inputs, *case.scalars)[position].value
    inputs = zip(kernel.operation.inputs, case.inputs, strict=True)
    operands = tuple(_values(spec.name, tensor) for spec, tensor in inputs)
    return wrong.model_copy(
        update={
            "operands": operands,
            "expected_values": _values(wrong.output, expected),
            "got_values": _values(wrong.output, got),
            "snippet": _program(kernel, operands, case.scalars, wrong),
        }
    )


def _values(name: str, tensor: torch.Tensor) -> Values:
    flat = tensor.detach().double().flatten().tolist()
    return Values(name=name, sizes=tuple(tensor.shape), values=tuple(_written(value) for value in flat))


def _written(value: float) -> str:
    """Return the shortest text that reads back exactly: 2, -0.5, nan."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e6 and str(value) != "-0.0" else repr(value)


def _program(
    kernel: LoadedKernel,
    operands: tuple[Values, ...],
    scalars: tuple[float, ...],
    wrong: Counterexample,
) -> str:
    types = [torch_dtype(spec.element_type(kernel.dtype)) for spec in kernel.operation.inputs]
    lines = [
        "import torch",
        f"from kernel import {kernel.entry}",
        "",
        *(["nan, inf = float('nan'), float('inf')", ""] if _unwritable(operands) else []),
        *(
            f"{one.name} = torch.tensor([{', '.join(one.values)}], dtype={element}).reshape({list(one.sizes)})"
            for one, element in zip(operands, types, strict=True)
        ),
        *_called(
            kernel,
            f"{kernel.entry}({', '.join([*(one.name for one in operands), *map(repr, scalars)])})",
            wrong.output,
        ),
        f"print(got[{wrong.index!r}].item(), 'expected', {wrong.expected!r}, 'within', {wrong.allowed_error!r})",
    ]
    return "\n".join(lines) + "\n"


def _called(kernel: LoadedKernel, call: str, output: str) -> tuple[str, ...]:
    """Return the lines that make the call and name the output `got`."""
    if output in kernel.operation.updates:
        return call, f"got = {output}"
    names = [spec.name for spec in kernel.operation.returned]
    return (f"got = {call}" + (f"[{names.index(output)}]" if len(names) > 1 else ""),)


def _unwritable(operands: tuple[Values, ...]) -> bool:
    return any(value.lstrip("-") in {"nan", "inf"} for one in operands for value in one.values)
