"""The values that a kind of workload is named for, of one activation: rows first, drawn standard normal.

Patterns take turns from row to row, beginning by lot, so that a few rows have all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from forge.domain.operation import InputKind
from forge.domain.tensors import DType

if TYPE_CHECKING:
    import torch

EXTREMES: dict[DType, tuple[float, float]] = {"fp32": (1e-6, 1e6), "bf16": (1e-6, 1e6), "fp16": (1e-3, 1e3)}
"""Scales of the kinds `small` and `large`: sums of two such values stay inside the dtype's range."""
OUTLIER = 300.0
OUTLIERS_TOGETHER = 8
"""As many as a thread or a vector instruction takes at once."""
FURTHEST: dict[DType, int] = {"fp32": 20, "bf16": 20, "fp16": 12}
"""Powers of two from a usual row to the largest and the smallest."""
MOST_IN_FP16 = 2.0**15 - 16
"""The sum of two such numbers doesn't overflow it, however it is rounded on the way."""
SHIFT, SHIFT_OF_OPERANDS = 1000.0, 8.0
LOWEST: dict[DType, float] = {"fp32": -(2.0**100), "bf16": -(2.0**100), "fp16": -65504.0}
"""What stands for minus infinity in masks that are finite; twice as much is finite too, but for fp16."""
UNMASKED = 3
"""Fewer than anything that is done in blocks takes at once."""


def of_kind(
    values: torch.Tensor, kind: InputKind, dtype: DType, turn: int, generator: torch.Generator
) -> torch.Tensor:
    """Values [rows, ...] of the activation that is number `turn`; they may be changed in place."""
    of_rows = values.unsqueeze(-1) if values.dim() == 1 else values
    return _KINDS[kind](of_rows, dtype, turn, generator).view_as(values)


Kind = Callable[["torch.Tensor", DType, int, "torch.Generator"], "torch.Tensor"]


def _uniform(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    return values.uniform_(-1, 1, generator=generator)


def _by_lot(below: int, generator: torch.Generator) -> int:
    import torch

    return int(torch.randint(max(1, below), (1,), generator=generator))


def _turns(values: torch.Tensor, patterns: int, generator: torch.Generator) -> torch.Tensor:
    """Which of so many patterns each row has."""
    import torch

    return (torch.arange(values.shape[0]) + _by_lot(patterns, generator)) % patterns


def _by_row(numbers: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return numbers.view(-1, *(1 for _ in values.shape[1:]))


def _signs(values: torch.Tensor, turn: int, generator: torch.Generator) -> torch.Tensor:
    """Above and below zero in turn, of each operand at another pace, so that all combinations come."""
    import torch

    at = _turns(values, 2 ** (turn + 1), generator) >> turn
    return _by_row(torch.where(at == 0, 1.0, -1.0), values)


def _offset_mean(values: torch.Tensor, _: DType, turn: int, generator: torch.Generator) -> torch.Tensor:
    return values + SHIFT * _signs(values, turn, generator)


def _offset_operands(values: torch.Tensor, _: DType, turn: int, generator: torch.Generator) -> torch.Tensor:
    return values + SHIFT_OF_OPERANDS * _signs(values, turn, generator)


def _outlier_channel(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    """Of each row one by lot, the first, the last, or a run, by lot or in front; above zero, then below."""
    import torch

    width = values.shape[-1]
    if not width:
        return values
    one, start = (_by_lot(width - size + 1, generator) for size in (1, OUTLIERS_TOGETHER))
    chosen = ((one, one + 1), (0, 1), (width - 1, width), (start, start + OUTLIERS_TOGETHER), (0, OUTLIERS_TOGETHER))
    outlying = torch.zeros(len(chosen), width, dtype=torch.bool)
    for pattern, (first, end) in enumerate(chosen):
        outlying[pattern, first:end] = True
    rows = outlying[_turns(values, len(chosen), generator)]
    signs = torch.where(torch.arange(values.shape[0]) // len(chosen) % 2 == 0, OUTLIER, -OUTLIER)
    outliers = (1 + values.abs()) * _by_row(signs, values)
    return torch.where(rows.view(-1, *(1 for _ in values.shape[1:-1]), width), outliers, values)


def _sparse(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    return values * (torch.rand(values.shape, generator=generator) < 0.05)


def _single(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    """All but one element of each row are zero."""
    import torch

    kept = torch.zeros_like(values)
    if not values.shape[-1]:
        return kept
    columns = torch.randint(values.shape[-1], (*values.shape[:-1], 1), generator=generator)
    return kept.scatter(-1, columns, values.gather(-1, columns))


def _padded(values: torch.Tensor, _: DType, __: int, ___: torch.Generator) -> torch.Tensor:
    """Zeros in one half of each row: in front of the first rows, behind the others, in all operands alike."""
    rows, width = values.shape[0], values.shape[-1]
    values[: (rows + 1) // 2, ..., : width // 2] = 0.0
    values[(rows + 1) // 2 :, ..., width // 2 :] = 0.0
    return values


def _ordered(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    rising = values.sort(-1).values
    return torch.where(_by_row(_turns(values, 2, generator) == 0, values), rising, rising.flip(-1))


def _rows_apart(values: torch.Tensor, dtype: DType, _: int, generator: torch.Generator) -> torch.Tensor:
    """Each row times another power of two, the extremes among them, in no order."""
    import torch

    rows = values.shape[0]
    powers = torch.linspace(-FURTHEST[dtype], FURTHEST[dtype], max(2, rows)).round()[:rows]
    apart = values * _by_row(powers[torch.randperm(rows, generator=generator)], values).exp2()
    return apart.clamp(-MOST_IN_FP16, MOST_IN_FP16) if dtype == "fp16" else apart


def _constant(values: torch.Tensor, _: DType, __: int, ___: torch.Generator) -> torch.Tensor:
    return values[..., :1].expand_as(values).contiguous()


def _tiny(values: torch.Tensor, dtype: DType, _: int, __: torch.Generator) -> torch.Tensor:
    """Normal numbers from one up to two times a power of two whose square underflows; fp16 has none that small."""
    import torch

    signs = torch.where(values < 0, -1.0, 1.0)
    return signs * (1 + values.abs().frac()) * (2.0**-10 if dtype == "fp16" else 2.0**-100)


def _subnormal(values: torch.Tensor, dtype: DType, _: int, __: torch.Generator) -> torch.Tensor:
    return values.clamp(-3, 3) * (2.0**-17 if dtype == "fp16" else 2.0**-129)


def _heavy_tails(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    return values / torch.rand(values.shape, generator=generator).clamp(min=2.0**-10)


def _zero_rows(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    """About half of the rows, and the first one whatever falls, so that operands have rows of zeros in common."""
    import torch

    if values.shape[0]:
        zero = torch.rand(values.shape[0], generator=generator) < 0.5
        zero[0] = True
        values[zero] = 0.0
    return values


def _masked(values: torch.Tensor, dtype: DType, _: int, generator: torch.Generator) -> torch.Tensor:
    """The lowest number in front of a place by lot, behind it, everywhere but at a few places, and everywhere."""
    import torch

    rows, width = values.shape[0], values.shape[-1]
    columns, at = torch.arange(width), torch.randint(max(1, width), (rows, 1), generator=generator)
    order = torch.rand((rows, width), generator=generator).argsort(-1)
    patterns = (columns < at, columns > at, order >= UNMASKED, torch.ones(rows, width, dtype=torch.bool))
    masked = torch.stack(patterns)[_turns(values, len(patterns), generator), torch.arange(rows)]
    return values.masked_fill(masked.view(rows, *(1 for _ in values.shape[1:-1]), width), LOWEST[dtype])


def _integers(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    """From -4 to 4: sums of 2^17 of their squares are exact in fp32, and of two of them in every type."""
    return values.random_(-4, 5, generator=generator)


def _normal(values: torch.Tensor, _: DType, __: int, ___: torch.Generator) -> torch.Tensor:
    return values


_KINDS: dict[InputKind, Kind] = {
    "normal": _normal,
    "uniform": _uniform,
    "large": lambda values, dtype, _, __: values * EXTREMES[dtype][1],
    "small": lambda values, dtype, _, __: values * EXTREMES[dtype][0],
    "tiny": _tiny,
    "subnormal": _subnormal,
    "heavy_tails": _heavy_tails,
    "ties": lambda values, _, __, ___: values.round().clamp(-2, 2),
    "offset_mean": _offset_mean,
    "offset_operands": _offset_operands,
    "outlier_channel": _outlier_channel,
    "rows_apart": _rows_apart,
    "sparse": _sparse,
    "single": _single,
    "padded": _padded,
    "ordered": _ordered,
    "constant": _constant,
    "zeros": lambda values, _, __, ___: values.zero_(),
    "zero_rows": _zero_rows,
    "masked": _masked,
    "integers": _integers,
    "special_weights": _normal,
    "weights_near_one": _normal,
}
