"""The least that can be asked anew is another question: two different numbers of a row change places."""

import random

import torch

from forge.lab.inputs.changes import FURTHEST, LAST, largest_at_the_end, shifted_further, swap_in_row
from forge.lab.inputs.draw import draw
from forge.lab.observed import Case
from forge.operations import find_operation

SHAPE = {"tokens": 8, "k": 4, "n": 4, "groups": 4}


def sizes_of(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A draw of the groups' sizes, and what stands there in the question after it."""
    inputs = draw(find_operation("grouped_matmul"), SHAPE, "fp32", "normal", seed=seed)
    return inputs[2], swap_in_row(Case(SHAPE, "normal", seed, inputs, ()), 2, random.Random(seed)).inputs[2]


def test_sizes_of_groups_change_places_whatever_lies_between_the_ends() -> None:
    pairs = [sizes_of(seed) for seed in range(200)]
    assert any(int(first[1]) == int(first[2]) for first, _ in pairs)
    for first, second in pairs:
        assert not torch.equal(first, second)
        assert torch.equal(first.sort().values, second.sort().values)


def test_a_row_of_one_number_alone_stays() -> None:
    alike = torch.full((4,), 2)
    assert torch.equal(swap_in_row(Case(SHAPE, "normal", 0, (alike,), ()), 0, random.Random(0)).inputs[0], alike)


def test_most_rows_get_their_largest_number_at_their_end_and_keep_what_was_drawn() -> None:
    operation, shape = find_operation("topk_per_row"), {"batch": 200, "vocab_size": 1000}
    inputs = draw(operation, shape, "fp32", "normal", seed=1)
    first = inputs[0].clone()
    (moved,) = largest_at_the_end(operation, Case(shape, "normal", 1, inputs, ()), random.Random(1)).inputs
    assert torch.equal(inputs[0], first)
    assert torch.equal(moved.sort(-1).values, first.sort(-1).values)
    places = moved.argmax(-1)
    at_the_end, last = int((places >= 1000 - LAST).sum()), int((places == 999).sum())
    assert 100 < at_the_end < 200
    assert 50 < last < at_the_end


def test_operands_whose_last_axis_is_another_one_stay() -> None:
    operation, shape = find_operation("sampling"), {"batch": 3, "vocab_size": 40}
    inputs = draw(operation, shape, "fp32", "normal", seed=1)
    moved = largest_at_the_end(operation, Case(shape, "normal", 1, inputs, ()), random.Random(1)).inputs
    assert all(map(torch.equal, moved[1:], inputs[1:]))


def test_rows_are_shifted_further_to_their_own_side_and_keep_their_distances() -> None:
    operation, shape = find_operation("moe_fused_gate"), {"tokens": 40, "experts": 50}
    inputs = draw(operation, shape, "fp32", "offset_operands", seed=1)
    moved = shifted_further(operation, Case(shape, "offset_operands", 1, inputs, ()), random.Random(1)).inputs
    before, after = inputs[0].mean(-1), moved[0].mean(-1)
    assert torch.equal(before.sign(), after.sign())
    assert bool((after.abs() >= before.abs() - 1e-3).all())
    assert 32 < float(after.abs().max()) < FURTHEST + 1
    assert torch.allclose(moved[0] - after.unsqueeze(-1), inputs[0] - before.unsqueeze(-1), atol=1e-4)
    assert torch.equal(moved[1], inputs[1])
