"""Which rule an output is judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from forge.domain.operation import Drawn, Exact, Expectation, Expected, Quantised, Ranked
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.judge.drawn import judge_drawn
from forge.lab.judge.elementwise import NOTHING_TO_JUDGE, Judged, judge_floats
from forge.lab.judge.ranked import judge_ranked
from forge.lab.judge.whole import judge_exact, judge_quantised

if TYPE_CHECKING:
    import torch


def judge(
    got: torch.Tensor,
    expected: Expected,
    baseline: torch.Tensor,
    *,
    dtype: DType,
    policy: Policy,
    patterned: bool = False,
    integers: bool = False,
) -> Judged:
    """Hold one output against what it should be; the arguments are those of `judge_floats`."""
    if got.numel() == 0:
        return NOTHING_TO_JUDGE
    match expected:
        case Expectation():
            return judge_floats(
                got, expected, baseline, dtype=dtype, policy=policy, patterned=patterned, integers=integers
            )
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
