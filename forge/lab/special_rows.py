"""Rows with NaN, infinities and the lowest finite number in them: alone, everywhere, and as masks put them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from forge.domain.operation import Operation
from forge.domain.tensors import DType

if TYPE_CHECKING:
    import torch

LOWEST: dict[DType, float] = {"fp32": -(2.0**100), "bf16": -(2.0**100), "fp16": -65504.0}
"""What stands for minus infinity in masks that are finite; twice as much is finite too, but for fp16."""
UNMASKED = 3
"""Fewer than anything that is done in blocks takes at once."""

Pattern = Callable[["torch.Tensor", "torch.Tensor", DType], None]
"""Changes one row's elements, given their places in an order of chance."""


def _at(*specials: float) -> Pattern:
    """Each at one place by lot."""

    def change(row: torch.Tensor, order: torch.Tensor, _: DType) -> None:
        for place, special in zip(order.tolist(), specials, strict=False):
            row[place] = special

    return change


def _everywhere(special: float) -> Pattern:
    def change(row: torch.Tensor, _: torch.Tensor, __: DType) -> None:
        row.fill_(special)

    return change


def _last(row: torch.Tensor, _: torch.Tensor, __: DType) -> None:
    row[-1] = math.nan


def _masked_in_front(row: torch.Tensor, order: torch.Tensor, _: DType) -> None:
    row[: int(order[0])] = -math.inf


def _masked_behind(row: torch.Tensor, order: torch.Tensor, _: DType) -> None:
    row[int(order[0]) + 1 :] = -math.inf


def _masked_but_for_a_few(row: torch.Tensor, order: torch.Tensor, _: DType) -> None:
    row[order[UNMASKED:]] = -math.inf


def _lowest_everywhere(row: torch.Tensor, _: torch.Tensor, dtype: DType) -> None:
    row.fill_(LOWEST[dtype])


def _nothing(_: torch.Tensor, __: torch.Tensor, ___: DType) -> None:
    """A row without stays right beside the others."""


PATTERNS: tuple[Pattern, ...] = (
    *(_nothing, _at(math.nan), _at(math.inf), _at(-math.inf), _at(math.inf, -math.inf)),
    *(_everywhere(math.nan), _everywhere(math.inf), _everywhere(-math.inf), _last),
    *(_masked_in_front, _masked_behind, _masked_but_for_a_few),
)
"""Of one row after the other."""
FINITE_MASKS: tuple[Pattern, ...] = (_lowest_everywhere,)


def patterns_for(operation: Operation) -> tuple[Pattern, ...]:
    """What the rows of an operation's operands are asked with."""
    return (*PATTERNS, *FINITE_MASKS) if operation.masks else PATTERNS


def with_special_rows(
    operation: Operation, values: torch.Tensor, dtype: DType, turn: int, generator: torch.Generator
) -> torch.Tensor:
    """Values [rows, ...] of activation number `turn`: each row has its pattern in one of them; changed in place."""
    import torch

    patterns, turns = patterns_for(operation), len(operation.activations)
    for row in range(values.shape[0]):
        flat = values[row].view(-1)
        order = torch.randperm(flat.numel(), generator=generator)
        if row // len(patterns) % turns == turn and flat.numel():
            patterns[row % len(patterns)](flat, order, dtype)
    return values
