"""Chooses the rule by which an output is judged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from forge.domain.input_kind import InputKind
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.judge.drawn import judge_drawn
from forge.lab.judge.elementwise import NOTHING_TO_JUDGE, JudgedOutput, judge_floats
from forge.lab.judge.specials import judge_specials
from forge.lab.judge.together import judged_together
from forge.lab.judge.whole import judge_exact, judge_quantised, verdict
from forge.operations.operation import Drawn, Exact, Expectation, Expected, Quantised, Ranked, SpecialsPolicy

if TYPE_CHECKING:
    import torch


SPECIAL_KINDS: frozenset[InputKind] = frozenset({"special_rows", "special_weights"})
"""Kinds with NaN and infinities."""
PATTERNED_KINDS: frozenset[InputKind] = frozenset(
    {
        *("constant", "ties", "single", "sparse", "padded", "masked", "zero_rows", "offset_mean", "integers"),
        "equal_weights",
    }
)
"""Kinds whose values or sums repeat one size, so that rounding errors don't cancel."""


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


def judge_kind(
    got: torch.Tensor,
    expected: Expected,
    baseline: torch.Tensor,
    *,
    kind: InputKind,
    specials: SpecialsPolicy,
    dtype: DType,
    policy: Policy,
) -> JudgedOutput:
    """Judge one output by the rule for inputs of this kind.

    The tensors have the sizes of the output.
    """
    if kind in SPECIAL_KINDS and isinstance(expected, Expectation):
        # a NaN among the weights affects only its column
        spreads = specials == "nan_may_spread" and kind == "special_rows"
        return judge_specials(got, expected, baseline, dtype=dtype, policy=policy, nan_may_spread=spreads)
    if kind != "normal" and isinstance(expected, Expectation) and expected.together is not None:
        expected = replace(expected, together=None)  # elements of one size are all rounded alike
    patterned, integers = kind in PATTERNED_KINDS, kind == "integers"
    return judge(got, expected, baseline, dtype=dtype, policy=policy, patterned=patterned, integers=integers)


def judge(
    got: torch.Tensor,
    expected: Expected,
    baseline: torch.Tensor,
    *,
    dtype: DType,
    policy: Policy,
    patterned: bool = False,
    integers: bool = False,
) -> JudgedOutput:
    """Judge one output by the rule for its expectation; arguments and sizes are those of `judge_floats`."""
    if got.numel() == 0:
        return NOTHING_TO_JUDGE
    match expected:
        case Expectation():
            judged = judge_floats(
                got, expected, baseline, dtype=dtype, policy=policy, patterned=patterned, integers=integers
            )
            asked = judged.within and expected.together is not None
            return judged_together(judged, got, expected, baseline, policy) if asked else judged
        case Exact():
            return judge_exact(got, expected)
        case Quantised():
            return judge_quantised(got, expected)
        case Ranked():
            return judge_ranked(got, expected)
        case Drawn():
            return judge_drawn(got, expected)
        case _:
            assert_never(expected)
