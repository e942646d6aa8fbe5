"""Whole numbers and truth values: right or wrong; quantised ones within what the value before rounding explains.

Values that repeat can all lie on one rounding boundary, where half a unit in the last place of the value before
decides: such ties don't count among those that may differ.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge.domain.operation import Exact, Quantised
from forge.lab.judge.elementwise import NOTHING_TO_JUDGE, Judged

if TYPE_CHECKING:
    import torch

EQUAL_SHARE = 0.99
"""Of quantised elements that aren't ties: at least so many are equal to the rounded oracle."""
TIE = 2.0**-20
"""A value that near to a rounding boundary, relative to itself, is a tie: a few roundings in fp32."""


def judge_exact(got: torch.Tensor, expected: Exact) -> Judged:
    """Every element equal; compared as they are, for fp64 doesn't hold every 64-bit integer; floats bit by bit."""
    import torch

    wrong = _bits(got) != _bits(expected.value)
    return verdict(got, expected.value, torch.where(wrong, math.inf, 0.0))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Floats as the integers of their bits: a NaN is itself, and zero isn't minus zero."""
    import torch

    if not tensor.is_floating_point():
        return tensor
    return tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.itemsize])


def judge_quantised(got: torch.Tensor, expected: Quantised) -> Judged:
    """The oracle's number, or its neighbour where a rounding boundary is within the uncertainty.

    That in one of a hundred at most, ties aside; a tensor too small for a hundredth may have one such element.
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
    permitted = max(1, math.floor((1 - EQUAL_SHARE) * counted.numel()))
    if int(counted.sum()) > permitted:
        used = torch.where(counted, math.inf, used)
    return verdict(got, right, used)


def verdict(got: torch.Tensor, value: torch.Tensor, used: torch.Tensor) -> Judged:
    """The verdict on an output whose elements are each right (0) or wrong (infinite)."""
    import torch

    if used.numel() == 0:
        return NOTHING_TO_JUDGE
    worst = tuple(int(i) for i in torch.unravel_index(used.argmax(), used.shape))
    return Judged(
        within=bool((used <= 1).all()),
        finite=math.isfinite(float(got[worst])),
        max_relative_error=0.0,
        bound_used=float(used[worst]),
        worst=worst,
        expected=float(value[worst]),
        got=float(got[worst]),
        allowed_error=0.0,
    )
