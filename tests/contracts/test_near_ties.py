"""Two corrected scores that rounding can't tell apart: either expert will do, with its own weight; no other will."""

import pytest
import torch

from forge.domain.policy import Policy
from forge.lab.judge import judge
from forge.operations.moe_fused_gate import CHOSEN, moe_fused_gate, oracle

EXPERTS, SCALE = 12, 2.5


def near(rank: int, gap: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Corrected scores a tenth apart, but for `gap` between one rank and the next, whose scores are far apart."""
    logits = torch.linspace(2.0, -2.0, EXPERTS, dtype=torch.float64)
    wanted = 3.0 - 0.1 * torch.arange(EXPERTS, dtype=torch.float64)
    wanted[rank + 1 :] += 0.1 - gap
    return logits.float().unsqueeze(0), (wanted - logits.sigmoid()).float()


def exchanged(logits: torch.Tensor, bias: torch.Tensor, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What a kernel returns that takes these two ranks the other way around."""
    order = torch.arange(EXPERTS)
    order[[rank, rank + 1]] = order[[rank + 1, rank]]
    chosen = logits.sigmoid().gather(-1, order[:CHOSEN].unsqueeze(0))
    return chosen / chosen.sum(-1, keepdim=True) * SCALE, order[:CHOSEN].unsqueeze(0).to(torch.int32)


def verdicts(logits: torch.Tensor, bias: torch.Tensor, got: tuple[torch.Tensor, ...]) -> list[bool]:
    right = moe_fused_gate(logits, bias, SCALE)
    return [
        judge(one, expected, baseline, dtype="fp32", policy=Policy()).within
        for one, expected, baseline in zip(got, oracle(logits, bias, SCALE), right, strict=True)
    ]


@pytest.mark.parametrize("rank", [0, 3, CHOSEN - 2, CHOSEN - 1])
def test_two_ranks_that_are_too_near_may_be_exchanged(rank: int) -> None:
    logits, bias = near(rank, gap=1e-8)
    assert verdicts(logits, bias, exchanged(logits, bias, rank)) == [True, True]


@pytest.mark.parametrize("rank", [0, 3, CHOSEN - 2, CHOSEN - 1])
def test_two_ranks_that_can_be_told_apart_may_not(rank: int) -> None:
    logits, bias = near(rank, gap=1e-4)
    assert verdicts(logits, bias, exchanged(logits, bias, rank)) == [False, False]


def test_a_tie_excuses_no_other_weight() -> None:
    logits, bias = near(3, gap=1e-8)
    weights, indices = moe_fused_gate(logits, bias, SCALE)
    for place in (0, 1, 5, 7):
        changed = weights.clone()
        changed[0, place] *= 1.001
        assert verdicts(logits, bias, (changed, indices)) == [False, True]
