"""Turns standard normal values of one activation, rows first, into the values of a kind of workload.

Patterns take turns from row to row, starting at a random one, so that a few rows have all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from forge.domain.input_kind import InputKind
from forge.domain.tensors import DType

if TYPE_CHECKING:
    import torch

EXTREMES: dict[DType, tuple[float, float]] = {"fp32": (1e-6, 1e6), "bf16": (1e-6, 1e6), "fp16": (1e-3, 1e3)}
"""Scales of the kinds `small` and `large`, by dtype. Sums of two such values stay inside the dtype's range."""
OUTLIER = 300.0
"""Factor by which outliers exceed usual values, and the number that `large_columns` adds. Chosen; a larger one leaves
the usual values less weight in a row's sum."""
OUTLIER_RUN = 8
"""Number of outliers side by side, as many as a thread or a vector instruction processes at once."""
MOST_POWERS_APART: dict[DType, int] = {"fp32": 20, "bf16": 20, "fp16": 12}
"""Number of powers of two from a usual row to the largest and to the smallest row, by dtype."""
MOST_IN_FP16 = 2.0**15 - 16
"""Largest number of the kind `rows_apart` in fp16. The sum of two such numbers doesn't overflow, however it is
rounded."""
MOST_TIED_POWER = 5
"""Power of two, at most, that normal values are multiplied by before they are rounded to whole numbers. Normal values
reach four, so these numbers reach 128, beyond those of the kind `integers`."""
SHIFT, OPERAND_SHIFT = 1000.0, 8.0
"""Distances from zero by which the kinds `offset_mean` and `offset_operands` shift values."""
LOWEST: dict[DType, float] = {"fp32": -(2.0**100), "bf16": -(2.0**100), "fp16": -65504.0}
"""Numbers that replace minus infinity in finite masks, by dtype. Twice the number is finite too, except in fp16."""
LANE_LENGTHS = (4, 8, 16, 32)
"""Numbers of a lane's elements of which one is drawn, where elements of like size lie in one lane. A lane that keeps
too few of its largest elements then loses some; lanes are a power of two."""
UNMASKED_COLUMNS = 3
"""Number of columns that a mask leaves, fewer than any block of columns that kernels process at once."""


def values_of_kind(
    values: torch.Tensor, kind: InputKind, dtype: DType, operand_index: int, generator: torch.Generator
) -> torch.Tensor:
    """Return values [rows, ...] of the kind for activation number `operand_index`; may change `values` in place."""
    of_rows = values.unsqueeze(-1) if values.dim() == 1 else values
    return _KINDS[kind](of_rows, dtype, operand_index, generator).view_as(values)


Kind = Callable[["torch.Tensor", DType, int, "torch.Generator"], "torch.Tensor"]


def _uniform(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    return values.uniform_(-1, 1, generator=generator)


def random_below(below: int, generator: torch.Generator) -> int:
    """Return a random number from 0 to `below` - 1; 0 if there is none."""
    import torch

    return int(torch.randint(max(1, below), (1,), generator=generator))


def _pattern_of_rows(values: torch.Tensor, patterns: int, generator: torch.Generator) -> torch.Tensor:
    """Return the number of each row's pattern, out of `patterns`."""
    import torch

    return (torch.arange(values.shape[0]) + random_below(patterns, generator)) % patterns


def _per_row(numbers: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return numbers.view(-1, *(1 for _ in values.shape[1:]))


def _signs(values: torch.Tensor, operand_index: int, generator: torch.Generator) -> torch.Tensor:
    """Return a sign for each row, positive or negative in turn.

    Each operand alternates at another pace, so that all combinations of signs occur.
    """
    import torch

    at = _pattern_of_rows(values, 2 ** (operand_index + 1), generator) >> operand_index
    return _per_row(torch.where(at == 0, 1.0, -1.0), values)


def _offset_mean(values: torch.Tensor, _: DType, operand_index: int, generator: torch.Generator) -> torch.Tensor:
    return values + SHIFT * _signs(values, operand_index, generator)


def _offset_operands(values: torch.Tensor, _: DType, operand_index: int, generator: torch.Generator) -> torch.Tensor:
    return values + OPERAND_SHIFT * _signs(values, operand_index, generator)


def _outlier_channel(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    """Put outliers into each row: at a random place, at an end, or as a run at a random place or at the start.

    Rows alternate between positive and negative outliers.
    """
    import torch

    width = values.shape[-1]
    if not width:
        return values
    one, start = (random_below(width - size + 1, generator) for size in (1, OUTLIER_RUN))
    chosen = ((one, one + 1), (0, 1), (width - 1, width), (start, start + OUTLIER_RUN), (0, OUTLIER_RUN))
    outlying = torch.zeros(len(chosen), width, dtype=torch.bool)
    for pattern, (first, end) in enumerate(chosen):
        outlying[pattern, first:end] = True
    rows = outlying[_pattern_of_rows(values, len(chosen), generator)]
    signs = torch.where(torch.arange(values.shape[0]) // len(chosen) % 2 == 0, OUTLIER, -OUTLIER)
    outliers = (1 + values.abs()) * _per_row(signs, values)
    return torch.where(rows.view(-1, *(1 for _ in values.shape[1:-1]), width), outliers, values)


def _large_columns(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    """Add the same large number to each column in one row; the rows get about as many columns each.

    A sum or a largest value without that column is then plainly wrong in that row, in a coarse type too.
    """
    import torch

    rows, width = values.shape[0], values.shape[-1]
    row_of = torch.randperm(width, generator=generator) % max(1, rows)
    large = row_of == torch.arange(rows).unsqueeze(-1)
    return values + OUTLIER * large.view(rows, *(1 for _ in values.shape[1:-1]), width)


def _sparse(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    return values * (torch.rand(values.shape, generator=generator) < 0.05)


def _single(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    """Return rows in which all but one element are zero."""
    import torch

    kept = torch.zeros_like(values)
    if not values.shape[-1]:
        return kept
    columns = torch.randint(values.shape[-1], (*values.shape[:-1], 1), generator=generator)
    return kept.scatter(-1, columns, values.gather(-1, columns))


def _padded(values: torch.Tensor, _: DType, __: int, ___: torch.Generator) -> torch.Tensor:
    """Set one half of each row to zero, the same in all operands.

    The first rows have zeros in front, the others at the end.
    """
    rows, width = values.shape[0], values.shape[-1]
    values[: (rows + 1) // 2, ..., : width // 2] = 0.0
    values[(rows + 1) // 2 :, ..., width // 2 :] = 0.0
    return values


def _ordered(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    rising = values.sort(-1).values
    lanes = values.shape[-1] // LANE_LENGTHS[random_below(len(LANE_LENGTHS), generator)]
    orders = torch.stack((rising, rising.flip(-1), _by_lanes(rising, 2 ** max(0, lanes.bit_length() - 1))))
    return orders[_pattern_of_rows(values, len(orders), generator), torch.arange(len(values))]


def _by_lanes(rising: torch.Tensor, lanes: int) -> torch.Tensor:
    """Return rows in which like numbers are `lanes` places apart; the smallest may be left over at the end."""
    import torch

    length = rising.shape[-1] // lanes
    left = rising.shape[-1] - length * lanes
    whole = rising[..., left:].unflatten(-1, (lanes, length)).transpose(-1, -2).flatten(-2)
    return torch.cat((whole, rising[..., :left]), -1)


def _rows_apart(values: torch.Tensor, dtype: DType, _: int, generator: torch.Generator) -> torch.Tensor:
    """Multiply each row by another power of two; the extremes are among them, and the order is random.

    Each of the others is drawn from its own part of the range, so that rows have any size now and then.
    """
    import torch

    rows, most = values.shape[0], MOST_POWERS_APART[dtype]
    between = max(0, rows - 2)
    places = (torch.arange(between) + torch.rand(between, generator=generator)) / max(1, between)
    powers = torch.cat([torch.tensor([-most, most])[:rows], (2 * places - 1) * most]).round()
    apart = values * _per_row(powers[torch.randperm(rows, generator=generator)], values).exp2()
    return apart.clamp(-MOST_IN_FP16, MOST_IN_FP16) if dtype == "fp16" else apart


def _constant(values: torch.Tensor, _: DType, __: int, ___: torch.Generator) -> torch.Tensor:
    return values[..., :1].expand_as(values).contiguous()


def _tiny(values: torch.Tensor, dtype: DType, _: int, __: torch.Generator) -> torch.Tensor:
    """Return normal numbers between one and two times a power of two whose square underflows.

    Fp16 has no numbers that small.
    """
    import torch

    signs = torch.where(values < 0, -1.0, 1.0)
    return signs * (1 + values.abs().frac()) * (2.0**-10 if dtype == "fp16" else 2.0**-100)


def _subnormal(values: torch.Tensor, dtype: DType, _: int, __: torch.Generator) -> torch.Tensor:
    return values.clamp(-3, 3) * (2.0**-17 if dtype == "fp16" else 2.0**-129)


def _heavy_tails(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    return values / torch.rand(values.shape, generator=generator).clamp(min=2.0**-10)


def _zero_rows(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    """Set about half of the rows to zero, always including the first, so that operands share rows of zeros."""
    import torch

    if values.shape[0]:
        zero = torch.rand(values.shape[0], generator=generator) < 0.5
        zero[0] = True
        values[zero] = 0.0
    return values


def _masked(values: torch.Tensor, dtype: DType, _: int, generator: torch.Generator) -> torch.Tensor:
    """Mask with the lowest number: before a random place, behind it, all but a few places, or everywhere."""
    import torch

    rows, width = values.shape[0], values.shape[-1]
    columns, at = torch.arange(width), torch.randint(max(1, width), (rows, 1), generator=generator)
    order = torch.rand((rows, width), generator=generator).argsort(-1)
    patterns = (columns < at, columns > at, order >= UNMASKED_COLUMNS, torch.ones(rows, width, dtype=torch.bool))
    masked = torch.stack(patterns)[_pattern_of_rows(values, len(patterns), generator), torch.arange(rows)]
    return values.masked_fill(masked.view(rows, *(1 for _ in values.shape[1:-1]), width), LOWEST[dtype])


def _ties(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    """Return whole numbers: from -2 to 2 and larger ones, row by row in turn."""
    import torch

    powers = 1 + random_below(MOST_TIED_POWER, generator)
    small = _per_row(_pattern_of_rows(values, 2, generator) == 0, values)
    return torch.where(small, values.round().clamp(-2, 2), (values * 2.0**powers).round())


def _integers(values: torch.Tensor, _: DType, __: int, generator: torch.Generator) -> torch.Tensor:
    """Return integers from -4 to 4.

    Sums of 2^17 of their squares are exact in fp32; sums of two are exact in every type.
    """
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
    "ties": _ties,
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
    "zero_weights": _normal,
    "equal_weights": _normal,
    "equal_operands": _normal,
    "large_columns": _large_columns,
}
