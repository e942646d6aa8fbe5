"""Puts the ends of a range, or one of two values once in each row, into a draw of numbers that aren't continuous."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge.domain.input_kind import InputKind
from forge.domain.own_operation import Among, Family, Integers

if TYPE_CHECKING:
    import torch

PART_OF_RANGE = 8
"""Divisor of a range of whole numbers: the kind `near_highest` draws from its upper eighth. Chosen; sums of 2,048
products of bytes then exceed 2^24 and may be odd, which fp32 can't hold."""


def planted(drawn: torch.Tensor, family: Family, kind: InputKind, generator: torch.Generator) -> torch.Tensor:
    """Return a draw, with the same sizes, with the ends of its family in a kind's pattern, or in order.

    Other kinds change nothing.
    """
    import torch

    match family:
        case Integers(low=low, high=high):
            low_end, high_end = torch.tensor((low, high), dtype=drawn.dtype)
        case Among(values=values):
            low_end, high_end = torch.tensor((min(values), max(values)), dtype=drawn.dtype)
        case _:
            return drawn
    match kind:
        case "near_highest" if isinstance(family, Integers):
            span = (family.high - family.low) // PART_OF_RANGE + 1
            return (family.high - torch.randint(span, drawn.shape, generator=generator)).to(drawn.dtype)
        case "lowest":
            return low_end.expand(drawn.shape).clone()
        case "highest":
            return high_end.expand(drawn.shape).clone()
        case "ends":
            return _end_values(drawn, low_end, high_end, generator)
        case "end_rows" if drawn.dim() > 1:
            chosen = _end_values(torch.zeros(drawn.shape[:-1]), torch.tensor(1.0), torch.tensor(2.0), generator)
            chosen = chosen.unsqueeze(-1)
            return torch.where(chosen == 1, low_end, torch.where(chosen == 2, high_end, drawn))
        case "end_rows":
            return _end_values(drawn, low_end, high_end, generator)
        case "single" if has_two_values(family):
            return _one_apart(drawn, low_end, high_end, generator)
        case _:
            return _in_order(drawn, kind)


def _in_order(drawn: torch.Tensor, kind: InputKind) -> torch.Tensor:
    if kind == "ordered":
        return rising(drawn)
    return falling(drawn) if kind == "falling" else drawn


def has_two_values(family: Family) -> bool:
    """Return whether a family is a choice of two values, as a mask's is."""
    return isinstance(family, Among) and len(family.values) == 2


def _one_apart(
    drawn: torch.Tensor, low: torch.Tensor, high: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """Return rows of the lower value with the upper one once, and the other way round, in turn."""
    import torch

    if not (drawn.dim() and drawn.numel()):
        return drawn
    width = drawn.shape[-1]
    rows = torch.arange(drawn.numel() // width)
    first = int(torch.randint(2, (), generator=generator))
    columns = torch.randint(width, (len(rows), 1), generator=generator)
    is_high = torch.arange(width) == columns
    is_high ^= ((rows + first) % 2 == 1).unsqueeze(-1)
    return torch.where(is_high, high, low).view(drawn.shape)


def _end_values(
    drawn: torch.Tensor, low: torch.Tensor, high: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """Return the numbers with each end at one in sixteen places, at least at one; a single number is either end."""
    import torch

    values = drawn.clone().reshape(-1)
    count = values.numel()
    places = torch.randperm(count, generator=generator)
    each = max(1, count // 16)
    if count == 1 and bool(torch.rand((), generator=generator) < 0.5):
        low, high = high, low
    values[places[:each]] = low
    values[places[each : 2 * each]] = high
    return values.reshape(drawn.shape)


def rising(values: torch.Tensor) -> torch.Tensor:
    """Return each row's values [..., width] in order, smallest first."""
    return values.sort(-1).values if values.dim() else values


def falling(values: torch.Tensor) -> torch.Tensor:
    """Return each row's values [..., width] in order, largest first."""
    return values.sort(-1, descending=True).values if values.dim() else values
