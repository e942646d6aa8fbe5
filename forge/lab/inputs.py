"""Workload to tensors: values drawn by the host, different for every call.

Activations (operands with the row axis) follow the kind; weights are always standard normal. Values are drawn in
fp32 and rounded to the operand's dtype, so that the oracle and the candidate see the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.operation import InputKind, Operation
from forge.domain.tensors import DType

if TYPE_CHECKING:
    import torch

EXTREMES: dict[DType, tuple[float, float]] = {"fp32": (1e-6, 1e6), "bf16": (1e-6, 1e6), "fp16": (1e-3, 1e3)}
"""Scales of the kinds `small` and `large`: sums of two such values stay inside the dtype's range."""


def torch_dtype(dtype: DType) -> torch.dtype:
    """Torch's own name for an element type."""
    import torch

    return {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[dtype]


def draw(
    operation: Operation, shape: Mapping[str, int], dtype: DType, kind: InputKind, *, seed: int
) -> tuple[torch.Tensor, ...]:
    """Draw the operation's operands at `shape`; the same seed gives the same values."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    tensors = []
    for spec in operation.inputs:
        values = torch.randn(spec.sizes(shape), generator=generator)
        if operation.row_axis in spec.axes:
            values = _KINDS[kind](values, generator, dtype)
        tensors.append(values.to(torch_dtype(dtype)))
    return tuple(tensors)


def _uniform(values: torch.Tensor, generator: torch.Generator, _: DType) -> torch.Tensor:
    return values.uniform_(-1, 1, generator=generator)


def _outlier_channel(values: torch.Tensor, generator: torch.Generator, _: DType) -> torch.Tensor:
    import torch

    if values.shape[-1]:
        channel = int(torch.randint(values.shape[-1], (1,), generator=generator))
        values[..., channel] *= 300.0
    return values


def _sparse(values: torch.Tensor, generator: torch.Generator, _: DType) -> torch.Tensor:
    import torch

    return values * (torch.rand(values.shape, generator=generator) < 0.05)


def _constant(values: torch.Tensor, _: torch.Generator, __: DType) -> torch.Tensor:
    return values[..., :1].expand_as(values).contiguous()


_KINDS: dict[InputKind, Callable[[torch.Tensor, torch.Generator, DType], torch.Tensor]] = {
    "normal": lambda values, _, __: values,
    "uniform": _uniform,
    "large": lambda values, _, dtype: values * EXTREMES[dtype][1],
    "small": lambda values, _, dtype: values * EXTREMES[dtype][0],
    "offset_mean": lambda values, _, __: values + 1000.0,
    "outlier_channel": _outlier_channel,
    "sparse": _sparse,
    "constant": _constant,
    "zeros": lambda values, _, __: values.zero_(),
}
