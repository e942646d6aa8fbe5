"""Positions and counts keep what their specification says, whatever the pattern; and every pattern comes."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.tensors import Counts, Indices, Parts, Slots, TensorSpec
from forge.lab.inputs.draw import draw
from forge.lab.inputs.integers import FAR_COUNTS, draw_numbers
from forge.operations import find_operation


def drawn(spec: TensorSpec, shape: dict[str, int], seed: int, *, usual: bool = False) -> torch.Tensor:
    return draw_numbers(spec, shape, {}, torch.Generator().manual_seed(seed), usual=usual)


SLOTS = TensorSpec(name="slots", axes=("tokens",), values=Slots(axis="slots"))
PARTS = TensorSpec(name="parts", axes=("groups",), values=Parts(axis="tokens"))


@given(st.integers(0, 20), st.integers(0, 30), st.integers(0, 2**40), st.booleans())
def test_slots_are_different_and_exist(tokens: int, slots: int, seed: int, usual: bool) -> None:
    taken = drawn(SLOTS, {"tokens": tokens, "slots": slots}, seed, usual=usual)
    assert taken.shape == (tokens,)
    named = taken[taken >= 0].tolist()
    assert len(set(named)) == len(named)
    assert all(slot < slots for slot in named)
    assert bool((taken >= -1).all())
    if usual:
        assert len(named) == Slots.taken(tokens, slots)
        assert not named or slots - 1 in named


@given(st.integers(0, 12), st.integers(0, 40), st.integers(0, 2**40), st.booleans())
def test_parts_are_never_more_than_the_whole(groups: int, tokens: int, seed: int, usual: bool) -> None:
    parts = drawn(PARTS, {"groups": groups, "tokens": tokens}, seed, usual=usual)
    assert parts.shape == (groups,)
    assert bool((parts >= 0).all())
    assert int(parts.sum()) <= tokens
    if usual and groups:
        assert int(parts.sum()) == tokens
        assert int((parts > 0).sum()) == Parts.filled(groups, tokens)


def test_unusual_slots_have_runs_and_none() -> None:
    seen = [drawn(SLOTS, {"tokens": 9, "slots": 50}, seed) for seed in range(60)]
    steps = [one.diff() for one in seen]
    assert any(bool((one == -1).all()) for one in seen)
    assert any(bool((one >= 0).all()) and int((step == 1).sum()) >= 7 for one, step in zip(seen, steps, strict=True))
    assert any(bool((one >= 0).all()) and int((step == -1).sum()) >= 7 for one, step in zip(seen, steps, strict=True))


def test_unusual_parts_are_nothing_everything_less_or_alike() -> None:
    seen = [drawn(PARTS, {"groups": 4, "tokens": 40}, seed).tolist() for seed in range(80)]
    assert [0, 0, 0, 0] in seen
    assert [10, 10, 10, 10] in seen
    assert any(max(one) == 40 for one in seen)
    assert any(0 < sum(one) < 40 for one in seen)
    assert any(min(one) > 0 and len(set(one)) > 1 for one in seen)


def test_labels_are_often_at_the_extremes() -> None:
    logits, labels = draw(
        find_operation("cross_entropy"), {"tokens": 400, "vocab_size": 50}, "fp32", "normal", seed=1
    )
    assert 60 < int((labels == logits.argmax(1)).sum()) < 150
    assert 60 < int((labels == logits.argmin(1)).sum()) < 150


def test_labels_of_no_extremes_are_anywhere() -> None:
    spec = TensorSpec(name="labels", axes=("tokens",), values=Indices(axis="size"))
    assert len(set(drawn(spec, {"tokens": 200, "size": 10}, 2).tolist())) == 10


def test_counts_reach_from_less_than_none_to_more_than_all_half_of_them_few() -> None:
    spec = TensorSpec(name="k", axes=("rows",), values=Counts(axis="size"))
    counts = drawn(spec, {"rows": 4000, "size": 5000}, 6)
    low, high = Counts.ends(5000)
    assert int(counts.min()) == low
    assert 5000 < int(counts[counts < high].max()) < high
    assert set(counts[counts >= high].tolist()) == set(FAR_COUNTS)
    assert 0.4 < float((counts < 64).double().mean()) < 0.6


def test_temperatures_are_alike_by_ratio() -> None:
    temperature = draw(find_operation("sampling"), {"batch": 4000, "vocab_size": 3}, "fp32", "normal", seed=1)[1]
    assert 0.45 < float((temperature < (2.0**-10 * 64) ** 0.5).double().mean()) < 0.55


def test_a_quarter_of_unusual_draws_have_the_default_settings_in_all_rows() -> None:
    plain = 0
    for seed in range(200):
        _, temperature, top_k, top_p, _ = draw(
            find_operation("sampling"), {"batch": 4, "vocab_size": 100}, "fp32", "mixed", seed=seed
        )
        plain += bool((temperature == 1).all() and (top_k == 0).all() and (top_p == 1).all())
    assert plain == 50


def test_some_groups_have_whole_tiles_of_rows() -> None:
    shape = {"tokens": 300, "k": 1, "n": 1, "groups": 4}
    sizes = [draw(find_operation("grouped_matmul"), shape, "fp32", "mixed", seed=seed)[2] for seed in range(200)]
    whole = [one for one in sizes if bool((one > 0).all()) and bool((one % 16 == 0).all())]
    assert whole
    assert all(int(one.sum()) <= 300 for one in sizes)
