"""Judges whole numbers and truth values exactly, and quantised numbers within the uncertainty before rounding.

Repeated values can all lie on one rounding boundary, where half a unit in the last place decides. Such ties don't
count among the elements that may differ.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge.lab.judge.elementwise import NOTHING_TO_JUDGE, JudgedOutput, index_of_largest
from forge.operations.operation import Exact, Quantised, Tied

if TYPE_CHECKING:
    import torch

EQUAL_SHARE = 0.99
"""Share of quantised elements without ties that must equal the rounded oracle, at least. Chosen; a result near a
boundary may lie on its other side by the kernel's own rounding."""
TIE = 2.0**-20
"""Distance from a rounding boundary, relative to the value, up to which a value is a tie: a few roundings in fp32."""


def judge_exact(got: torch.Tensor, expected: Exact) -> JudgedOutput:
    """Judge that every element is equal; fp64 can't hold all 64-bit integers, so types stay as they are.

    Floats are compared bit by bit. At most a share of them may have one of the other values. In a small tensor two
    may, since a tie swaps two indices. Indices of equal numbers may be any that differ along their axis.

    `got` has the sizes of the expected value.
    """
    import torch

    bits, right = _bits(got), _bits(expected.value)
    if got.numel() and bits.dtype == right.dtype and torch.equal(bits, right):  # one pass, where the rest takes ten
        return _worst_at((0,) * got.dim(), got, expected.value, 0.0, None)
    differs = bits != right
    if expected.tied is not None:
        differs = differs & ~_free(got, expected.value, expected.tied)
    wrong = differs
    for other in expected.others:
        wrong = wrong & (_bits(got) != _bits(other))
    if int(differs.sum()) > max(2, _permitted(differs.numel(), expected.others_share)):
        wrong = differs
    return verdict(got, expected.value, torch.where(wrong, math.inf, 0.0))


def _free(got: torch.Tensor, expected: torch.Tensor, tied: Tied) -> torch.Tensor:
    """Return which elements may be as they are: indices of equal numbers, in range and not twice along their axis."""
    ordered = got.sort(tied.apart).values
    once = (ordered.diff(dim=tied.apart) != 0).all(tied.apart, keepdim=True)
    free = tied.where & once & (got >= tied.low) & (got <= tied.high)
    for numbers in tied.numbers:
        within = got.clamp(0, numbers.shape[tied.apart] - 1).long()
        free &= numbers.gather(tied.apart, within) == numbers.gather(tied.apart, expected.long())
    return free


def _permitted(count: int, share: float = 1 - EQUAL_SHARE) -> int:
    """Return the number of elements that may differ where a rounding decides: a share of them, and at least one."""
    return max(1, math.floor(share * count))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return floats as the integers of their bits: a NaN then equals itself, and zero differs from minus zero."""
    import torch

    if not tensor.is_floating_point():
        return tensor
    return tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.itemsize])


def judge_quantised(got: torch.Tensor, expected: Quantised) -> JudgedOutput:
    """Judge each number: it is the oracle's, or its neighbour if a rounding boundary is within the uncertainty.

    At most one element in a hundred may differ, without ties; a tensor too small for a hundredth may have one.

    `got` has the sizes of the expected value.
    """
    import torch

    rounded, value = got.double(), expected.unrounded
    right = expected.value
    # rounding keeps order: a value within the uncertainty rounds to a number in between these
    low, high = (expected.nearest(value + side * expected.uncertainty) for side in (-1, 1))
    other = rounded != right
    near = (rounded - right).abs() <= 1 if expected.grid == "whole" else other
    explained = ~other | (near & (low <= rounded) & (rounded <= high))
    used = torch.where(explained, 0.0, math.inf)
    counted = other & (expected.nearest(value * (1 - TIE)) == expected.nearest(value * (1 + TIE)))
    if int(counted.sum()) > _permitted(counted.numel()):
        used = torch.where(counted, math.inf, used)
    return verdict(got, right, used)


def verdict(got: torch.Tensor, value: torch.Tensor, used: torch.Tensor) -> JudgedOutput:
    """Return the verdict on an output whose elements are each right (0) or wrong (infinite).

    The tensors have the sizes of the output.
    """
    if used.numel() == 0:
        return NOTHING_TO_JUDGE
    outside = ~(used <= 1)
    worst = index_of_largest(used)
    return _worst_at(worst, got, value, float(used[worst]), outside if bool(outside.any()) else None)


def _worst_at(
    worst: tuple[int, ...], got: torch.Tensor, value: torch.Tensor, used: float, wrong: torch.Tensor | None
) -> JudgedOutput:
    """Return the verdict on an output, from the index of its worst element and the mask of its wrong ones."""
    return JudgedOutput(
        within=wrong is None,
        wrong=wrong,
        finite=math.isfinite(float(got[worst])),
        max_relative_error=0.0,
        bound_used=used,
        worst=worst,
        expected=float(value[worst]),
        got=float(got[worst]),
        allowed_error=0.0,
    )
