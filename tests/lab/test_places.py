"""The least that can be asked anew is another question: two different numbers of a row change places."""

import random

import torch

from forge.lab.inputs.changes import swap_in_row
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
