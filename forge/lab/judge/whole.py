"""Whole numbers and truth values: right or wrong; quantised ones within what the value before rounding explains."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge.domain.operation import Exact, Quantised
from forge.lab.judge.elementwise import NOTHING_TO_JUDGE, Judged

if TYPE_CHECKING:
    import torch

EQUAL_SHARE = 0.99
"""Of quantised elements: at least so many are equal to the rounded oracle."""


def judge_exact(got: torch.Tensor, expected: Exact) -> Judged:
    """Every element equal; compared as they are, for fp64 doesn't hold every 64-bit integer."""
    import torch

    wrong = got != expected.value
    return _verdict(got, expected.value, torch.where(wrong, math.inf, 0.0))


def judge_quantised(got: torch.Tensor, expected: Quantised) -> Judged:
    """One quantum off at most, where a rounding boundary is within the uncertainty, and in one of a hundred at most.

    A tensor too small for a hundredth may have one such element.
    """
    import torch

    rounded = expected.value
    off = (got.double() - rounded).abs()
    # a value within the uncertainty rounds to this number only if a rounding boundary lies in between
    reachable = (got.double() - expected.unrounded).abs() <= 0.5 + expected.uncertainty
    explained = (off == 0) | ((off <= 1) & reachable)
    used = torch.where(explained, 0.0, math.inf)
    permitted = max(1, math.floor((1 - EQUAL_SHARE) * off.numel()))
    if int((off != 0).sum()) > permitted:
        used = torch.where(off != 0, math.inf, used)
    return _verdict(got, rounded, used)


def _verdict(got: torch.Tensor, value: torch.Tensor, used: torch.Tensor) -> Judged:
    import torch

    if used.numel() == 0:
        return NOTHING_TO_JUDGE
    worst = tuple(int(i) for i in torch.unravel_index(used.argmax(), used.shape))
    return Judged(
        within=bool((used <= 1).all()),
        finite=bool(torch.isfinite(got[worst])),
        max_relative_error=0.0,
        bound_used=float(used[worst]),
        worst=worst,
        expected=float(value[worst]),
        got=float(got[worst]),
        allowed_error=0.0,
    )
