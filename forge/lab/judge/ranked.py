"""Judges positions of the largest values by the values at them, since equal values are equally good."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge.lab.judge.elementwise import NOTHING_TO_JUDGE, JudgedOutput
from forge.lab.judge.whole import verdict
from forge.operations.operation import Ranked

if TYPE_CHECKING:
    import torch


def judge_ranked(got: torch.Tensor, expected: Ranked) -> JudgedOutput:
    """Judge each position: it must exist, come once, and have its rank's value within the uncertainty.

    `got` [..., count] are positions along the last axis of `expected.values`. A row with a NaN has no order: there
    every existing position is accepted.
    """
    import torch

    if got.numel() == 0:
        return NOTHING_TO_JUDGE
    size = expected.values.shape[-1]
    positions = got.long()
    exists = (positions >= 0) & (positions < size)
    at = positions.clamp(0, size - 1)
    right = expected.value
    distance = (expected.values.gather(-1, at) - expected.values.gather(-1, right)).abs()
    explained = expected.uncertainty.gather(-1, at) + expected.uncertainty.gather(-1, right)
    in_order = (distance <= explained) | (at == right)  # infinities have no difference
    once = (at.unsqueeze(-1) == at.unsqueeze(-2)).sum(-1) == 1
    without_order = expected.values.isnan().any(-1, keepdim=True)
    good = exists & (without_order | (in_order & once))
    return verdict(got, right, torch.where(good, 0.0, math.inf))
