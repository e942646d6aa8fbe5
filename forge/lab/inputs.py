"""Workload to tensors: values drawn by the host, different for every call.

Activations (float operands with the row axis) follow the kind; weights are standard normal but for four kinds that
say otherwise; indices and packed numbers are drawn as the operand's specification says, whatever the kind. Floats are
drawn in fp32 and rounded to the operand's dtype, so that the oracle and the candidate see the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, assert_never

from forge.domain.operation import InputKind, Operation
from forge.domain.tensors import (
    TORCH_NAMES,
    AnyByte,
    AsKind,
    Between,
    Chance,
    DType,
    ElementType,
    Indices,
    Parts,
    Slots,
    TensorSpec,
    Whole,
)

if TYPE_CHECKING:
    import torch

EXTREMES: dict[DType, tuple[float, float]] = {"fp32": (1e-6, 1e6), "bf16": (1e-6, 1e6), "fp16": (1e-3, 1e3)}
"""Scales of the kinds `small` and `large`: sums of two such values stay inside the dtype's range."""
LARGE_WEIGHTS = 32.0
"""Scale of the weights beside `large` activations: normalised rows times these stay inside every dtype's range."""


def torch_dtype(element: ElementType) -> torch.dtype:
    """Torch's own name for an element type."""
    import torch

    found = getattr(torch, TORCH_NAMES[element])
    assert isinstance(found, torch.dtype)
    return found


def draw(
    operation: Operation, shape: Mapping[str, int], dtype: DType, kind: InputKind, *, seed: int
) -> tuple[torch.Tensor, ...]:
    """Draw the operation's operands at `shape`; the same seed gives the same values."""
    import torch

    if operation.draw is not None:
        return operation.draw(shape, kind, seed)
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        _drawn(operation, spec, shape, dtype, kind, generator).to(torch_dtype(spec.element_type(dtype))).contiguous()
        for spec in operation.inputs
    )


def _drawn(
    operation: Operation,
    spec: TensorSpec,
    shape: Mapping[str, int],
    dtype: DType,
    kind: InputKind,
    generator: torch.Generator,
) -> torch.Tensor:
    import torch

    sizes = spec.sizes(shape)
    match spec.values:
        case AsKind(exponent=exponent):
            values = _by_kind(operation, spec, torch.randn(sizes, generator=generator), dtype, kind, generator)
            return values * 2.0**exponent if exponent else values
        case Indices(axis=axis, unique=True):
            count = int(torch.Size(sizes).numel())
            return torch.randperm(shape[axis], generator=generator)[:count].view(sizes)
        case Indices(axis=axis):
            return torch.randint(max(1, shape[axis]), sizes, generator=generator)
        case Whole(below=below):
            return torch.randint(below, sizes, generator=generator)
        case AnyByte():
            return torch.randint(256, sizes, generator=generator, dtype=torch.uint8)
        case Between(low=low, high=high):
            return low + (high - low) * torch.rand(sizes, generator=generator)
        case Chance():
            return torch.rand(sizes, generator=generator)
        case Parts(axis=axis):
            return _parts(int(torch.Size(sizes).numel()), shape[axis], generator).view(sizes)
        case Slots(axis=axis):
            return _slots(int(torch.Size(sizes).numel()), shape[axis], generator).view(sizes)
        case _:
            assert_never(spec.values)


def _parts(count: int, total: int, generator: torch.Generator) -> torch.Tensor:
    """One for each part that isn't to be zero, and the rest where chance, of uneven odds, puts it."""
    import torch

    parts = torch.zeros(count, dtype=torch.int64)
    filled = torch.randperm(count, generator=generator)[: Parts.filled(count, total)]
    parts[filled] = 1
    rest = total - filled.numel()
    if rest and filled.numel():
        odds = torch.rand(filled.numel(), generator=generator).square() + 0.01
        drawn = torch.multinomial(odds, rest, replacement=True, generator=generator)
        parts[filled] += torch.bincount(drawn, minlength=filled.numel())
    return parts


def _slots(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    slots = torch.full((count,), -1)
    taken = Slots.taken(count, size)
    places = torch.randperm(count, generator=generator)[:taken]
    slots[places] = torch.randperm(size, generator=generator)[:taken]
    return slots


def _by_kind(
    operation: Operation,
    spec: TensorSpec,
    values: torch.Tensor,
    dtype: DType,
    kind: InputKind,
    generator: torch.Generator,
) -> torch.Tensor:
    activations = [one.name for one in operation.activations]
    if spec.name not in activations:
        return _weight(values, kind)
    if kind != "special_rows":
        return _KINDS[kind](values, generator, dtype)
    rows, turn = spec.axes.index(operation.row_axis), activations.index(spec.name)
    return _special_rows(values.movedim(rows, 0), turn, len(activations)).movedim(0, rows)


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
