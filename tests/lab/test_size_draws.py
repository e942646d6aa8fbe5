"""Drawn sizes cover their range: each octave every time, and each class of parity in each octave over some seeds."""

import random

import pytest

from forge.lab.inputs.random_sizes import CLASSES, WIDEST, in_each_octave, log_uniform, near_shape, odd_size, of_class

SEEDS = 400
OCTAVES = [2**power for power in range(1, WIDEST.bit_length() - 1)]


def test_each_octave_has_its_size_every_time() -> None:
    for seed in range(SEEDS):
        sizes = in_each_octave(random.Random(seed), 2, WIDEST)
        assert len(sizes) == len(OCTAVES)
        assert all(low <= size < 2 * low for low, size in zip(OCTAVES, sizes, strict=True))


@pytest.mark.parametrize("modulus_and_rest", sorted(set(CLASSES)))
def test_each_class_comes_in_each_octave_that_has_it(modulus_and_rest: tuple[int, int]) -> None:
    modulus, rest = modulus_and_rest
    drawn = [in_each_octave(random.Random(seed), 2, WIDEST) for seed in range(SEEDS)]
    for place, low in enumerate(OCTAVES):
        if any(size % modulus == rest for size in range(low, 2 * low)):
            assert any(sizes[place] % modulus == rest for sizes in drawn), low


def test_sizes_between_two_listed_ones_are_drawn_in_every_part() -> None:
    rng = random.Random(1)
    parts = {of_class(rng, 8192, 16383, *rng.choice(CLASSES)) // 1024 for _ in range(SEEDS)}
    assert parts == set(range(8, 16))


def test_draws_stay_between_their_ends_and_reach_them() -> None:
    rng = random.Random(2)
    drawn = [log_uniform(rng, 3, 9) for _ in range(SEEDS)]
    assert (min(drawn), max(drawn)) == (3, 9)
    assert all(odd_size(rng, 4, 8) in (5, 7) for _ in range(SEEDS))
    assert of_class(rng, 9, 15, 16, 0) in range(9, 16)


def test_shapes_near_the_public_one_differ_from_seed_to_seed() -> None:
    shape = {"batch": 4, "hidden_size": 256}
    drawn = {tuple(near_shape(shape, "batch", "hidden_size", random.Random(seed)).items()) for seed in range(SEEDS)}
    assert len(drawn) > SEEDS / 2
