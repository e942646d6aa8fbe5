"""Rows with NaN and infinities in them: alone, everywhere, and as masks put them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from forge.domain.operation import Operation
from forge.lab.inputs.distributions import UNMASKED

if TYPE_CHECKING:
    import torch

Pattern = Callable[["torch.Tensor", "torch.Tensor"], None]
"""Changes one row's elements, given their places in an order of chance."""


def _at(*specials: float) -> Pattern:
    """Each at one place by lot."""

    def change(row: torch.Tensor, order: torch.Tensor) -> None:
        for place, special in zip(order.tolist(), specials, strict=False):
            row[place] = special

    return change


def _everywhere(special: float) -> Pattern:
    def change(row: torch.Tensor, _: torch.Tensor) -> None:
        row.fill_(special)

    return change


def _last(row: torch.Tensor, _: torch.Tensor) -> None:
    row[-1] = math.nan


def _masked_in_front(row: torch.Tensor, order: torch.Tensor) -> None:
    row[: int(order[0])] = -math.inf


def _masked_behind(row: torch.Tensor, order: torch.Tensor) -> None:
    row[int(order[0]) + 1 :] = -math.inf


def _masked_but_for_a_few(row: torch.Tensor, order: torch.Tensor) -> None:
    row[order[UNMASKED:]] = -math.inf


def _nothing(_: torch.Tensor, __: torch.Tensor) -> None:
    """A row without stays right beside the others."""


PATTERNS: tuple[Pattern, ...] = (
    *(_nothing, _at(math.nan), _at(math.inf), _at(-math.inf), _at(math.inf, -math.inf)),
    *(_everywhere(math.nan), _everywhere(math.inf), _everywhere(-math.inf), _last),
    *(_masked_in_front, _masked_behind, _masked_but_for_a_few),
)
"""Of one row after the other."""


def with_special_rows(
    operation: Operation, values: torch.Tensor, turn: int, generator: torch.Generator
) -> torch.Tensor:
    """Values [rows, ...] of activation number `turn`: each row has its pattern in one of them; changed in place."""
    import torch

    turns = len(operation.activations)
    for row in range(values.shape[0]):
        flat = values[row].view(-1)
        order = torch.randperm(flat.numel(), generator=generator)
        if row // len(PATTERNS) % turns == turn and flat.numel():
            PATTERNS[row % len(PATTERNS)](flat, order)
    return values
