"""Draws each float operand's size, signs and order at random, and makes some operands equal, opposite or zero.

In some draws all operands are powers of two, or some rows are equal, or one operand is tiny. A kernel that is wrong
for one pattern of values, such as one magnitude or alternating signs, is asked that pattern in some draws. These
patterns then need no kinds of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from forge.domain.tensors import DType, ElementType

if TYPE_CHECKING:
    import torch

POWERS: dict[DType, tuple[int, int]] = {"fp32": (-30, 36), "bf16": (-30, 36), "fp16": (-12, 10)}
"""Ranges of the power of two that an operand is multiplied by, by dtype. The cube of such a number is inside the
dtype's range in fp32 and bf16. In fp16 the numbers themselves are."""
POWERS_IN_FP8 = (-5, 6)
"""Range of the power of two for operands in fp8, whose largest number is 448."""
MOST_POWERS: dict[DType, int] = {"fp32": 44, "bf16": 44, "fp16": 8}
"""Sum of the operands' positive powers, at most, by dtype. The square of a product of all operands is then inside the
range of fp32, in which kernels compute."""
ZERO_SHARE = 0.0625
"""Share of the operands that are zero. Chosen; zeros say little about sums."""
RELATED_SHARE = 0.25
"""Share of the operands that are equal or opposite to an earlier one of their form. Chosen; equal operands say little
about sums."""
OPPOSITE_SHARE = 0.375
"""Share of the related operands that are opposite. Chosen; equal ones are usual, as where one tensor is given
twice."""
TINY_POWERS: dict[DType, tuple[int, int]] = {"fp32": (-108, -30), "bf16": (-108, -30)}
"""Ranges of the power of two of a tiny operand, by dtype; no number of fp16 is that small. Where rows are quantised,
their scale and its inverse are then still normal numbers."""
BESIDE_TINY = 2
"""Largest power of two of the operands beside a tiny one. A right kernel may divide a tiny weight by the size of a
row first. Beside larger rows the quotient isn't a normal number, and loses bits."""
TINY_SHARE = 0.25
"""Share of the draws that have a tiny operand. Chosen, with the two below: 96 draws miss one of three operands below
1e-30 with a chance of 0.3 %."""
TINIEST_SHARE = 0.75
"""Share of the tiny operands whose power of two is one of the `TINIEST` smallest in its range."""
TINIEST = 8
"""Number of powers of two at the lower end of a range from which most tiny operands are drawn."""
POWERS_SHARE = 0.09375
"""Share of the draws whose operands are all powers of two. Chosen; 96 draws have none with a chance below 0.1 %."""
EQUAL_ROWS_SHARE = 0.25
"""Share of the draws that have equal rows. Chosen; 96 draws have none with a chance below 0.1 %."""
ALL_ROWS_SHARE = 0.375
"""Share of the draws with equal rows where rows are equal in all operands. In the others each operand has equal rows
with a chance of a half. Chosen; 96 draws miss equal rows in one of two operands alone with a chance of 2 %."""
PATTERNED_SHARE = 0.5
"""Share of the operands whose signs follow a pattern. The order of the numbers follows one in a share of this size
too. Chosen, so that half keep random signs, and half a random order."""


class Mixture:
    """The operands of one call so far, and the limit on the product of all."""

    def __init__(self, dtype: DType, operands: int, generator: torch.Generator) -> None:
        self._dtype: DType = dtype
        self._generator = generator
        self._left = MOST_POWERS[dtype]
        self._earlier: list[tuple[torch.Tensor, ElementType, int]] = []
        self._tiny = self._below(operands) if dtype in TINY_POWERS and self._chance(TINY_SHARE) else None
        self._powers_of_two = self._chance(POWERS_SHARE)
        self._equal_rows = (1.0 if self._chance(ALL_ROWS_SHARE) else 0.5) if self._chance(EQUAL_ROWS_SHARE) else 0.0
        self._row_seed = self._below(2**31)

    def __call__(self, sizes: tuple[int, ...], element: ElementType, row_axis: int | None) -> torch.Tensor:
        """Draw one operand, as fp32 values [..., width] in units of its usual size."""
        values = self._drawn(sizes, element)
        if self._powers_of_two:
            values = nearest_powers(values)
        if row_axis is not None and self._chance(self._equal_rows):
            values = with_equal_rows(values, row_axis, self._row_seed)
        return values

    def _drawn(self, sizes: tuple[int, ...], element: ElementType) -> torch.Tensor:
        import torch

        alike = [
            (values, power)
            for values, of, power in self._earlier
            if values.shape == sizes and of == element and power <= self._left
        ]
        if self._tiny == len(self._earlier):
            values, power = self._fresh(torch.randn(sizes, generator=self._generator), element)
        elif self._chance(ZERO_SHARE):
            values, power = torch.zeros(sizes), 0
        elif alike and self._chance(RELATED_SHARE):
            values, power = alike[self._below(len(alike))]
            values = -values if self._chance(OPPOSITE_SHARE) else values
        else:
            values, power = self._fresh(torch.randn(sizes, generator=self._generator), element)
        self._left -= max(0, power)
        self._earlier.append((values, element, power))
        return values

    def _fresh(self, values: torch.Tensor, element: ElementType) -> tuple[torch.Tensor, int]:
        """Return changed values, and the power of two that they were multiplied by."""
        if values.dim() and self._chance(PATTERNED_SHARE):
            values = ORDERS[self._below(len(ORDERS))](values)
        if values.dim() and self._chance(PATTERNED_SHARE):
            values = SIGNS[self._below(len(SIGNS))](values.abs())
        power = self._power(element)
        return values * 2.0**power, power

    def _power(self, element: ElementType) -> int:
        """Return a power of two; beside a tiny operand no other is small or large, so that products don't vanish."""
        low, high = POWERS_IN_FP8 if element == "fp8_e4m3" else POWERS[self._dtype]
        if self._tiny is not None and element != "fp8_e4m3":
            if self._tiny == len(self._earlier):
                least, most = TINY_POWERS[self._dtype]
                return least + self._below(TINIEST if self._chance(TINIEST_SHARE) else most - least + 1)
            low, high = 0, BESIDE_TINY
        return low + self._below(min(high, self._left) - low + 1)

    def _chance(self, share: float) -> bool:
        import torch

        return bool(torch.rand((), generator=self._generator) < share)

    def _below(self, below: int) -> int:
        import torch

        return int(torch.randint(below, (), generator=self._generator))


def nearest_powers(values: torch.Tensor) -> torch.Tensor:
    """Return each value as the power of two below it or equal to it, with its sign; sizes and zeros stay."""
    import torch

    return torch.where(values == 0, values, torch.ldexp(values.sign(), values.frexp().exponent - 1))


def with_equal_rows(values: torch.Tensor, row_axis: int, seed: int) -> torch.Tensor:
    """Return values, with the same sizes, in which random rows along `row_axis` take the places of others.

    One seed chooses the same rows for each operand.
    """
    import torch

    rows = values.shape[row_axis]
    generator = torch.Generator().manual_seed(seed)
    return values.index_select(row_axis, torch.randint(max(1, rows), (rows,), generator=generator))


Change = Callable[["torch.Tensor"], "torch.Tensor"]


def _alternating(sizes: torch.Tensor) -> torch.Tensor:
    sizes[..., 1::2].neg_()
    return sizes


def _rows_alternating(sizes: torch.Tensor) -> torch.Tensor:
    sizes[1::2].neg_()
    return sizes


def _halves(sizes: torch.Tensor) -> torch.Tensor:
    sizes[..., sizes.shape[-1] // 2 :].neg_()
    return sizes


def _mirrored(values: torch.Tensor) -> torch.Tensor:
    half = values.shape[-1] // 2
    values[..., values.shape[-1] - half :] = values[..., :half].flip(-1)
    return values


def _paired(values: torch.Tensor) -> torch.Tensor:
    """Return values in which each two neighbours are equal."""
    values[..., 1::2] = values[..., : values.shape[-1] // 2 * 2 : 2]
    return values


SIGNS: tuple[Change, ...] = (
    lambda sizes: sizes,
    lambda sizes: sizes.neg_(),
    _alternating,
    lambda sizes: _alternating(sizes).neg_(),
    _rows_alternating,
    _halves,
    lambda sizes: _halves(sizes).neg_(),
)
"""Patterns of signs, as functions of sizes [..., width]: all alike, in turn, row by row, or half by half."""
ORDERS: tuple[Change, ...] = (
    lambda values: values.sort(-1).values,
    lambda values: values.sort(-1, descending=True).values,
    lambda values: values.sort(0).values,
    lambda values: values.sort(0, descending=True).values,
    _mirrored,
    _paired,
)
"""Orders of values [..., width]: rising or falling along the last axis or the first, as in a mirror, or in pairs."""
