"""Judges NaN and infinities: the output must have them where the reference has them, and nowhere else.

The fp64 oracle and the reference in the working type differ only where the latter overflows; there either is
accepted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.judge.elementwise import NOTHING_TO_JUDGE, JudgedOutput, allowed, judged
from forge.operations.operation import Expectation

if TYPE_CHECKING:
    import torch


def judge_specials(
    got: torch.Tensor,
    expectation: Expectation,
    baseline: torch.Tensor,
    *,
    dtype: DType,
    policy: Policy,
    nan_may_spread: bool = False,
) -> JudgedOutput:
    """Judge one output: each element must be of the right kind (NaN, infinity, finite), finite ones within the bound.

    If NaN may spread, a summed element may be NaN where it is infinite, or where its row has a NaN.

    The tensors are [..., width], with the sizes of the output.
    """
    import torch

    if got.numel() == 0:
        return NOTHING_TO_JUDGE
    value = expectation.value.to(got.dtype).double()  # values that overflow the output's type become infinite
    bound = allowed(expectation, baseline, dtype=dtype, policy=policy).nan_to_num(nan=0.0, posinf=0.0)
    overflown = ~_same_kind(value, baseline.double())
    close = _agrees(got.double(), value, bound) | (overflown & _agrees(got.double(), baseline.double(), bound))
    if nan_may_spread and expectation.terms > 1 and value.dim() > 1:
        close |= got.isnan() & (value.isinf() | value.isnan().any(-1, keepdim=True))
    error = torch.where(close & ~got.isfinite(), 0.0, (got.double() - expectation.value).abs())
    share = torch.where(bound > 0, error / bound, 0.0).nan_to_num(nan=0.0, posinf=0.0).clamp(max=1.0)
    return judged(got, expectation, error, bound, torch.where(close, share, math.inf))


def _agrees(got: torch.Tensor, value: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    both = got.isfinite() & value.isfinite()
    return (both & ((got - value).abs() <= bound)) | (~both & _same_kind(got, value))


def _same_kind(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    finite = one.isfinite() & other.isfinite()
    return finite | (one.isnan() & other.isnan()) | (one.isinf() & other.isinf() & (one.sign() == other.sign()))
