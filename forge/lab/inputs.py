"""Workload to tensors: values drawn by the host, different for every call.

Activations (operands with the row axis) follow the kind; weights are standard normal but for four kinds that say
otherwise. Values are drawn in fp32 and rounded to the operand's dtype, so that the oracle and the candidate see the
same numbers.
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
LARGE_WEIGHTS = 32.0
"""Scale of the weights beside `large` activations: normalised rows times these stay inside every dtype's range."""


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
    activations = [spec.name for spec in operation.inputs if operation.row_axis in spec.axes]
    tensors = []
    for spec in operation.inputs:
        values = torch.randn(spec.sizes(shape), generator=generator)
        if spec.name not in activations:
            values = _weight(values, kind)
        elif kind == "special_rows":
            turn, turns = activations.index(spec.name), len(activations)
            values = _special_rows(values.movedim(spec.axes.index(operation.row_axis), 0), turn, turns).movedim(
                0, spec.axes.index(operation.row_axis)
            )
        else:
            values = _KINDS[kind](values, generator, dtype)
        tensors.append(values.to(torch_dtype(dtype)).contiguous())
    return tuple(tensors)


SPECIAL_ROWS: tuple[tuple[str, ...], ...] = (
    *((), ("nan",), ("inf",), ("-inf",), ("inf", "-inf")),
    *(("nan",) * 3, ("inf",) * 3, ("-inf",) * 3),
)
"""Row after row, what stands in it: nothing, one value, one each of two, or (three times the same) nothing else."""


def _special_rows(values: torch.Tensor, turn: int, turns: int) -> torch.Tensor:
    """Each row has its special values in one operand, the operands taking turns."""
    for row in range(values.shape[0]):
        specials = SPECIAL_ROWS[row % len(SPECIAL_ROWS)]
        flat = values[row].view(-1)
        if row // len(SPECIAL_ROWS) % turns != turn or not specials or not flat.numel():
            continue
        if len(specials) == 3:
            flat.fill_(float(specials[0]))
        for place, special in enumerate(specials):
            flat[(row * 7 + place * 3) % flat.numel()] = float(special)
    return values


def _weight(values: torch.Tensor, kind: InputKind) -> torch.Tensor:
    """Signed powers of two from 1/4 to 4 where sums are to be exact; and what three kinds are named for."""
    import torch

    if kind == "integers":
        return torch.where(values < 0, -1.0, 1.0) * torch.exp2((values.abs() * 2).floor().clamp(max=4) - 2)
    if kind == "weights_near_one":
        return 1 + values / 16
    if kind == "large":
        return values * LARGE_WEIGHTS
    if kind == "special_weights":
        flat = values.view(-1)
        for place, special in enumerate(("nan", "inf", "-inf")[: flat.numel()]):
            flat[(5 * place) % flat.numel()] = float(special)
    return values


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


def _tiny(values: torch.Tensor, _: torch.Generator, dtype: DType) -> torch.Tensor:
    """Normal numbers from one up to two times a power of two whose square underflows; fp16 has none that small."""
    import torch

    signs = torch.where(values < 0, -1.0, 1.0)
    return signs * (1 + values.abs().frac()) * (2.0**-10 if dtype == "fp16" else 2.0**-100)


def _subnormal(values: torch.Tensor, _: torch.Generator, dtype: DType) -> torch.Tensor:
    return values.clamp(-3, 3) * (2.0**-17 if dtype == "fp16" else 2.0**-129)


def _heavy_tails(values: torch.Tensor, generator: torch.Generator, _: DType) -> torch.Tensor:
    import torch

    return values / torch.rand(values.shape, generator=generator).clamp(min=2.0**-10)


def _zero_rows(values: torch.Tensor, generator: torch.Generator, _: DType) -> torch.Tensor:
    """About half of the rows, and the first one whatever falls, so that operands have rows of zeros in common."""
    import torch

    if values.shape[0]:
        zero = torch.rand(values.shape[0], generator=generator) < 0.5
        zero[0] = True
        values[zero] = 0.0
    return values


def _integers(values: torch.Tensor, generator: torch.Generator, _: DType) -> torch.Tensor:
    """From -4 to 4: sums of 2^17 of their squares are exact in fp32, and of two of them in every type."""
    return values.random_(-4, 5, generator=generator)


_KINDS: dict[InputKind, Callable[[torch.Tensor, torch.Generator, DType], torch.Tensor]] = {
    "normal": lambda values, _, __: values,
    "uniform": _uniform,
    "large": lambda values, _, dtype: values * EXTREMES[dtype][1],
    "small": lambda values, _, dtype: values * EXTREMES[dtype][0],
    "tiny": _tiny,
    "subnormal": _subnormal,
    "heavy_tails": _heavy_tails,
    "ties": lambda values, _, __: values.round().clamp(-2, 2),
    "offset_mean": lambda values, _, __: values + 1000.0,
    "outlier_channel": _outlier_channel,
    "sparse": _sparse,
    "constant": _constant,
    "zeros": lambda values, _, __: values.zero_(),
    "zero_rows": _zero_rows,
    "integers": _integers,
    "special_weights": lambda values, _, __: values,
    "weights_near_one": lambda values, _, __: values,
}
