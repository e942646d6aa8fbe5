"""The mask is aligned to the lower right corner: the last query sees all, and one that sees nothing answers zeros."""

import pytest
import torch

from forge.domain.policy import Policy
from forge.lab.inputs.draw import draw
from forge.lab.judge import judge
from forge.operations import find_operation

PREFILL, DECODE = find_operation("attention_prefill"), find_operation("attention_decode")


def operands(tokens: int, length: int) -> tuple[torch.Tensor, ...]:
    shape = {"tokens": tokens, "kv_len": length, "kv_heads": 2, "group": 3, "head_dim": 16}
    return draw(PREFILL, shape, "fp32", "normal", seed=tokens * length)


def within(got: torch.Tensor, inputs: tuple[torch.Tensor, ...]) -> bool:
    (expected,) = PREFILL.oracle(*inputs)
    return judge(got, expected, PREFILL.reference(*inputs), dtype="fp32", policy=Policy()).within  # type: ignore[arg-type]


@pytest.mark.parametrize(("tokens", "length"), [(1, 1), (1, 65), (7, 7), (7, 64), (5, 66)])
def test_each_query_is_a_decoding_step_over_what_it_sees(tokens: int, length: int) -> None:
    q, k, v = operands(tokens, length)
    steps = []
    for place in range(tokens):
        seen = length - tokens + place + 1
        steps.append(DECODE.reference(q[place : place + 1], k[:seen].unsqueeze(0), v[:seen].unsqueeze(0)))
    assert within(torch.cat(steps), (q, k, v))  # type: ignore[arg-type]


@pytest.mark.parametrize("function", [PREFILL.reference, PREFILL.vendor, *PREFILL.variants.values()])
def test_queries_that_see_nothing_answer_zeros(function) -> None:
    inputs = operands(9, 4)
    y = function(*inputs)
    assert not bool(y[:5].any())
    assert bool(y[5:].any())
    assert within(y, inputs)
    means = y.clone()
    means[:5] = inputs[2].mean(0).unsqueeze(1)
    assert not within(means, inputs)


def test_the_oracle_is_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = operands(9, 30)
    (whole,) = PREFILL.oracle(*inputs)
    monkeypatch.setattr("forge.operations.attention_prefill.ORACLE_SCORES", 2 * 30 * 6)
    (parts,) = PREFILL.oracle(*inputs)
    assert torch.allclose(whole.value, parts.value, rtol=1e-13)
    assert torch.allclose(whole.scale, parts.scale, rtol=1e-13)  # type: ignore[union-attr]


@pytest.mark.parametrize(("tokens", "length"), [(1, 1), (4, 9), (9, 4), (6, 6)])
def test_its_flops_count_the_pairs_that_are_seen(tokens: int, length: int) -> None:
    pairs = sum(max(0, length - tokens + place + 1) for place in range(tokens))
    shape = {"tokens": tokens, "kv_len": length, "kv_heads": 2, "group": 3, "head_dim": 16}
    assert PREFILL.flops(shape) == 4 * pairs * 6 * 16
