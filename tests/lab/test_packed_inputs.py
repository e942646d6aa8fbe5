"""Operands whose numbers depend on each other: sizes that add up, slots that differ, numbers to draw by."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.tensors import Counts, Parts, Slots
from forge.lab.inputs.draw import draw
from forge.lab.inputs.integers import FAR_COUNTS
from forge.operations import find_operation

SEEDS = st.integers(0, 2**48 - 1)


@given(st.integers(0, 300), st.integers(1, 40), SEEDS)
def test_sizes_add_up_and_a_quarter_of_the_groups_is_empty(tokens: int, groups: int, seed: int) -> None:
    shape = {"tokens": tokens, "k": 1, "n": 1, "groups": groups}
    sizes = draw(find_operation("grouped_matmul"), shape, "fp32", "normal", seed=seed)[2]
    assert sizes.dtype == torch.int32
    assert int(sizes.sum()) == tokens
    assert int(sizes.min()) >= 0
    assert int((sizes > 0).sum()) == Parts.filled(groups, tokens)


@given(st.integers(0, 300), st.integers(1, 300), SEEDS)
def test_slots_differ_and_some_tokens_have_none(tokens: int, slots: int, seed: int) -> None:
    shape = {"tokens": tokens, "slots": slots, "kv_heads": 1, "head_dim": 1}
    mapping = draw(find_operation("kv_cache_append"), shape, "fp32", "normal", seed=seed)[4]
    taken = mapping[mapping >= 0]
    assert taken.unique().numel() == taken.numel() == Slots.taken(tokens, slots)
    assert mapping.numel() == tokens
    assert bool(((mapping >= -1) & (mapping < slots)).all())


def test_one_token_has_a_slot() -> None:
    assert Slots.taken(1, 1) == 1
    assert Slots.taken(16, 100) == 14


def test_the_drawing_numbers_are_from_zero_up_to_one_and_the_parameters_within_their_bounds() -> None:
    _, heat, k, p, u = draw(find_operation("sampling"), {"batch": 999, "vocab_size": 1}, "bf16", "large", seed=98)
    assert 0 <= float(u.min()) < 0.01
    assert 0.99 < float(u.max()) < 1
    for low, one, high in ((2.0**-10, heat, 64.0), (0.0, p, 1.4)):
        assert float(one.min()) == low
        assert abs(float(one.max()) - high) < 1e-6 * high
        assert 0.2 < float(((one <= low) | (one >= one.max())).double().mean()) < 0.3
    assert set(k.tolist()) == {*range(*Counts.ends(1)), *FAR_COUNTS}
