"""Judges positions drawn by random numbers: each by the weights' running sums, many by how often each came."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge.lab.judge.elementwise import NOTHING_TO_JUDGE, JudgedOutput
from forge.lab.judge.whole import verdict
from forge.operations.operation import Drawn

if TYPE_CHECKING:
    import torch

FEWEST_EXPECTED = 20
"""Number of expected draws below which positions are counted together. Chosen: four times the five that textbooks
ask, since the test's distribution holds for large counts."""


def judge_drawn(got: torch.Tensor, expected: Drawn) -> JudgedOutput:
    """Judge each position: it must be allowed, and the share must fall on it within the uncertainty of its sums.

    `got` [rows] are positions along the last axis of the weights.
    """
    import torch

    if got.numel() == 0:
        return NOTHING_TO_JUDGE
    size = expected.weights.shape[-1]
    positions = got.long()
    exists = (positions >= 0) & (positions < size)
    at = positions.clamp(0, size - 1).unsqueeze(-1)
    reached = expected.weights.cumsum(-1)
    total = reached[:, -1]
    own, upper, allowed = (one.gather(-1, at).squeeze(-1) for one in (expected.weights, reached, expected.allowed))
    target, slack = expected.share * total, expected.uncertainty * total
    falls = (upper - own - slack <= target) & (target <= upper + slack)
    return verdict(got, expected.value, torch.where(exists & allowed & falls, 0.0, math.inf))


def chance_of(positions: torch.Tensor, weights: torch.Tensor) -> float:
    """Return the probability that positions drawn by the weights have counts at least as far from them as these.

    This is a G-test (Sokal and Rohlf, "Biometry", 3rd edition, section 17.2). 2 sum O ln(O / E) has a chi-square
    distribution, with one degree of freedom less than there are classes. Positions [draws], weights [positions].
    """
    import torch

    counts = torch.bincount(positions.long(), minlength=weights.shape[0]).double()
    expected = weights.double() / weights.double().sum() * counts.sum()
    often = expected >= FEWEST_EXPECTED
    classes = [(counts[often], expected[often])]
    rest = (counts[~often].sum().view(1), expected[~often].sum().view(1))
    if float(rest[1]) > 0:
        classes.append(rest)
    observed, wanted = (torch.cat(one) for one in zip(*classes, strict=True))
    g = 2 * torch.xlogy(observed, observed / wanted).sum().clamp(min=0.0)
    freedom = observed.numel() - 1
    return float(torch.special.gammaincc(torch.tensor(freedom / 2.0).double(), g / 2)) if freedom else 1.0
