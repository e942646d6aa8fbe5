"""Puts NaN and infinities into rows: alone, everywhere, and as masks do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from forge.lab.inputs.distributions import UNMASKED_COLUMNS
from forge.operations.operation import Operation

if TYPE_CHECKING:
    import torch

ZERO_SHARE = 0.25
"""Share of zeros in the operands beside one with special values. Chosen; most elements still show what comes out."""
Pattern = Callable[["torch.Tensor", "torch.Tensor"], None]
"""Function that changes one row's elements, given their positions in random order."""


def are_defined(operation: Operation, *, keeps_fp8_nan: bool) -> bool:
    """Return whether the contract says what becomes of NaN and infinities, and they reach a kernel.

    Operands in fp8 hold NaN alone. Without `keeps_fp8_nan` it is lost before a kernel can compute with it.
    """
    in_fp8 = any(spec.element == "fp8_e4m3" for spec in operation.inputs)
    return operation.specials != "unspecified" and (keeps_fp8_nan or not in_fp8)


def _at_random_places(*specials: float) -> Pattern:
    """Return a pattern that puts each special value at a random place."""

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
    row[order[UNMASKED_COLUMNS:]] = -math.inf


def _nothing(_: torch.Tensor, __: torch.Tensor) -> None:
    """Leave a row without special values; it must stay right beside the others."""


PATTERNS: tuple[Pattern, ...] = (
    *(
        _nothing,
        _at_random_places(math.nan),
        _at_random_places(-math.nan),
        _at_random_places(math.inf),
        _at_random_places(-math.inf),
        _at_random_places(math.inf, -math.inf),
        _at_random_places(math.inf, math.inf, math.inf),
        _at_random_places(math.nan, math.inf, math.nan, -math.inf),
    ),
    *(_everywhere(math.nan), _everywhere(math.inf), _everywhere(-math.inf), _last),
    *(_masked_in_front, _masked_behind, _masked_but_for_a_few),
)
"""Patterns that the rows get in turn. A NaN has its sign bit in one of them, as x86 makes it of 0 / 0."""


def with_special_rows(
    operation: Operation, values: torch.Tensor, operand_index: int, generator: torch.Generator
) -> torch.Tensor:
    """Change values [rows, ...] of activation number `operand_index` in place, and return them.

    Each row has its pattern in one of the operands, and some zeros in the others: a product of NaN and zero is NaN.
    The patterns begin where those of the seed before ended, the same for all operands, so that each is asked where
    rows are few.
    """
    import torch

    operands = len(operation.activations)
    first = generator.initial_seed() % (operands * len(PATTERNS)) * values.shape[0]
    for row, number in enumerate(range(first, first + values.shape[0])):
        flat = values[row].view(-1)
        order = torch.randperm(flat.numel(), generator=generator)
        if number // len(PATTERNS) % operands != operand_index:
            flat[order[: int(ZERO_SHARE * flat.numel()) if number % len(PATTERNS) else 0]] = 0.0
        elif flat.numel():
            PATTERNS[number % len(PATTERNS)](flat, order)
    return values
