"""Judges all elements of an output in 16 bits together: how much larger, how far off, and how usual their errors are.

In bf16 three roundings are more than one per cent, so one element may be a per cent off. Roundings go to both sides,
so a thousand elements may not. And a few elements may err most, but not all of them: the reference itself shows what
is usual. It is asked where a bound was measured instead of derived.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forge.domain.policy import Policy
from forge.lab.judge.elementwise import JudgedOutput, index_of_largest
from forge.operations.operation import Expectation

if TYPE_CHECKING:
    import torch


FEWEST_ALIKE = 64
"""Number of elements of one size from which on their usual error is judged. Chosen; the root mean square of 64 errors
is uncertain by 9 %."""
RMS_MULTIPLE = 2.0
"""Multiple of the reference's root mean square error that is allowed: four times as many roundings."""
RMS_ROUNDINGS = 0.5
"""Part of the expectation's share that is allowed beside it, which is one rounding at its largest: three at their
usual size. A reference that rounds once would else refuse a kernel that rounds on its way."""


OFFSET_ROUNDINGS, OFFSET_STANDARD_ERRORS = 0.125, 8.0
"""Parts of the expectation's share that the mean of all errors may reach, over the values' root mean square.

The first is a quarter of a rounding, for factors that channels have in common. The second counts standard errors of
the largest roundings.
"""


def judged_together(
    judged: JudgedOutput, got: torch.Tensor, expectation: Expectation, baseline: torch.Tensor, policy: Policy
) -> JudgedOutput:
    """Return the verdict on elements that are within their bounds, by all of them together.

    The tensors have the sizes of the output.
    """
    value, alone = expectation.value, _plain(expectation)
    seen, own = _errors_of(got, value), _errors_of(baseline, value)
    multiple = policy.tolerance_baseline_multiple
    most = _Errors(
        share=alone.share + multiple * abs(own.share),
        offset=alone.offset + multiple * abs(own.offset),
        usual=alone.usual + RMS_MULTIPLE * own.usual,
    )
    if seen.within(most):
        return judged
    said, allowed = _beyond(seen, most, value)
    worst = index_of_largest(((got.double() - value).abs() - allowed).nan_to_num(nan=-math.inf))
    return replace(
        judged,
        within=False,
        worst=worst,
        expected=float(value[worst]),
        got=float(got[worst]),
        allowed_error=float(allowed[worst]),
        bound_used=max(abs(seen.share) / most.share, abs(seen.offset) / most.offset, seen.usual / most.usual),
        together=said,
    )


def _beyond(seen: _Errors, most: _Errors, value: torch.Tensor) -> tuple[str, torch.Tensor]:
    """Return what is wrong in words, and the error by which an element shows it."""
    size = value.where(value.isfinite(), 0.0).square().mean().sqrt().expand_as(value)
    if not abs(seen.share) <= most.share:
        times = f"all elements together are {1 + seen.share:.6g} times the right ones"
        return f"{times}, expected 1 within {most.share:.3g}", most.share * value.abs()
    if not abs(seen.offset) <= most.offset:
        off = f"all elements together are off by {seen.offset:.3g} of their size"
        return f"{off}, expected 0 within {most.offset:.3g}", most.offset * size
    usual = f"the root mean square of all errors is {seen.usual:.3g} of their size"
    return f"{usual}, expected {most.usual:.3g} at most", most.usual * size


def plainly_together(got: torch.Tensor, expectation: Expectation) -> bool:
    """Return whether all elements together are right, without what the reference's own errors allow.

    `got` has the sizes of the expectation's value.
    """
    return expectation.together is None or _errors_of(got, expectation.value).within(_plain(expectation))


@dataclass(frozen=True)
class _Errors:
    """Errors of all elements together, over the root mean square of the right values."""

    share: float
    """Share by which all are too large: the slope of the errors over the right values."""
    offset: float
    """Mean of the errors."""
    usual: float
    """Root mean square of the errors."""

    def within(self, most: _Errors) -> bool:
        return abs(self.share) <= most.share and abs(self.offset) <= most.offset and self.usual <= most.usual


def _errors_of(got: torch.Tensor, value: torch.Tensor) -> _Errors:
    """Return the errors of an output. Elements that aren't finite don't count; each has a bound of its own."""
    finite = got.isfinite() & value.isfinite()
    right = value.where(finite, 0.0)
    errors = (got.double() - value).where(finite, 0.0)
    count, square = max(1, int(finite.sum())), float(right.square().sum())
    if square == 0:
        return _Errors(0.0, 0.0, 0.0)
    return _Errors(
        share=float((errors * right).sum()) / square,
        offset=float(errors.sum()) / math.sqrt(count * square),
        usual=math.sqrt(float(errors.square().sum()) / square),
    )


def _plain(expectation: Expectation) -> _Errors:
    """Return the errors that roundings explain.

    The share is twice as much for a single value as for very many, which still have some roundings in common. For few
    values the usual error and the mean differ by chance, and anything is allowed.
    """
    assert expectation.together is not None
    right = expectation.value.where(expectation.value.isfinite(), 0.0)
    squares = right.square()
    square, fourth = float(squares.sum()), float(squares.square().sum())
    alike = max(1.0, square**2 / fourth) if fourth > 0 else 1.0
    few = alike < FEWEST_ALIKE
    mean = abs(float(right.sum())) / math.sqrt(right.numel() * square) if square > 0 else 0.0
    off = mean + OFFSET_ROUNDINGS + OFFSET_STANDARD_ERRORS / math.sqrt(alike)
    return _Errors(
        share=expectation.together * (1 + 1 / math.sqrt(alike)),
        offset=math.inf if few else expectation.together * off,
        usual=math.inf if few else expectation.together * RMS_ROUNDINGS,
    )
