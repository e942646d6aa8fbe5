"""Output against oracle: within the bound, element by element, or not.

The bound is `max(m x the baseline's own error in the row, r u_out |y*| + c u_acc (sqrt(n) + 8) S)`; docs/numerics.md
derives it. Acceptance is written positively, so a NaN anywhere is a refusal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forge.domain.operation import Expectation
from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF, DType

if TYPE_CHECKING:
    import torch

SMALLEST_SIZE: dict[DType, float] = {"fp32": 2.0**-126, "bf16": 2.0**-126, "fp16": 2.0**-24}
"""Below this an absolute error is allowed: the smallest normal number (flushing to zero is common practice), for
fp16, whose normal numbers end at 6e-5, the smallest subnormal one."""


@dataclass(frozen=True)
class Judged:
    """How far one output was from what it should be."""

    within: bool
    finite: bool
    max_relative_error: float
    """Largest |y - y*| / S where S > 0."""
    bound_used: float
    """Largest |y - y*| / bound; infinite where the output isn't finite."""
    worst: tuple[int, ...]
    """Index of the element that used most of its bound."""
    expected: float
    got: float
    allowed_error: float


def judge(
    got: torch.Tensor,
    expectation: Expectation,
    baseline: torch.Tensor,
    *,
    dtype: DType,
    policy: Policy,
    patterned: bool = False,
) -> Judged:
    """Hold one output against its expectation; `baseline` is the reference's own output in the same dtype.

    `patterned` inputs (all terms equal) make rounding errors add up instead of cancelling: the worst-case growth
    n takes the place of sqrt(n) + 8 there.
    """
    import torch

    value = expectation.value
    if value.numel() == 0:
        return Judged(True, True, 0.0, 0.0, (), 0.0, 0.0, 0.0)
    error = (got.double() - value).abs()
    growth = expectation.terms + 8 if patterned else math.sqrt(expectation.terms) + 8
    bound = _bound(expectation, baseline, growth, dtype=dtype, policy=policy)
    used = (error / bound).nan_to_num(nan=math.inf, posinf=math.inf)
    flat = int(used.argmax())
    worst = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), value.shape))
    relative = torch.where(expectation.scale > 0, error / expectation.scale, torch.zeros_like(error))
    finite_relative = relative[torch.isfinite(relative)]
    return Judged(
        within=bool((error <= bound).all()),
        finite=bool(torch.isfinite(got).all()),
        max_relative_error=float(finite_relative.max()) if finite_relative.numel() else 0.0,
        bound_used=float(used[worst]),
        worst=worst,
        expected=float(value[worst]),
        got=float(got[worst]),
        allowed_error=float(bound[worst]),
    )


def plainly_within(got: torch.Tensor, expectation: Expectation, *, dtype: DType, policy: Policy) -> bool:
    """Whether every element is within what a good kernel reaches, without asking how good the baseline is.

    The full bound is at least this one, so True here is True there, at a third of the cost.
    """
    error = got.double().sub_(expectation.value).abs_()
    reachable = _reachable(expectation, math.sqrt(expectation.terms) + 8, dtype=dtype, policy=policy)
    return bool((error <= reachable).all())


def _reachable(expectation: Expectation, growth: float, *, dtype: DType, policy: Policy) -> torch.Tensor:
    rounded = expectation.roundings * UNIT_ROUNDOFF[dtype]
    accumulated = policy.tolerance_accumulate_multiple * UNIT_ROUNDOFF["fp32"] * growth
    bound = expectation.value.abs().mul_(rounded)
    return bound.add_(expectation.scale, alpha=accumulated).add_(SMALLEST_SIZE[dtype])


def _bound(
    expectation: Expectation, baseline: torch.Tensor, growth: float, *, dtype: DType, policy: Policy
) -> torch.Tensor:
    import torch

    value = expectation.value
    baseline_error = (baseline.double() - value).abs().nan_to_num(nan=0.0, posinf=0.0)
    in_row = baseline_error.amax(-1, keepdim=True) if value.dim() else baseline_error
    reachable = _reachable(expectation, growth, dtype=dtype, policy=policy)
    return torch.maximum(policy.tolerance_baseline_multiple * in_row, reachable)
