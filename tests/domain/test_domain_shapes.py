"""Shapes that are drawn inside a domain lie inside, and those just outside lie outside."""

import random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forge.domain.domain_shapes import (
    edge_shapes,
    holds_at_least,
    listed_shapes,
    nearest_inside,
    outside_in_several,
    outside_shapes,
    random_inside,
    random_outside,
)
from forge.domain.domain_text import parse_domain
from forge.domain.kernel_domain import LARGEST_SIZE, KernelDomain
from tests.domain.domains import AXES, domains, shapes

Sizes = dict[str, int]
LEAST = {"m": 0, "k": 1, "n": 1}
INSIDE = {"m": 128, "k": 64, "n": 256}


def domain(text: str) -> KernelDomain:
    return parse_domain(text, AXES)


def as_it_is(_: str, shape: Sizes) -> Sizes:
    return shape


@settings(max_examples=300)
@given(domains(), shapes(), shapes(), st.integers(0, 1000))
def test_every_drawn_shape_lies_where_it_should(found: KernelDomain, inside: Sizes, other: Sizes, seed: int) -> None:
    inside = nearest_inside(found, inside, {axis: found.sizes_of(axis).low for axis in AXES})
    assume(found.contains(inside))
    assert found.contains(nearest_inside(found, other, inside))
    assert found.contains(random_inside(found, inside, dict.fromkeys(AXES, 4096), random.Random(seed)))
    assert all(found.contains(shape) for shape in edge_shapes(found, inside, as_it_is))
    anywhere = random_outside(found, inside, LEAST, random.Random(seed))
    outside = [*outside_shapes(found, inside, LEAST), *anywhere]
    for shape, condition in (*outside, *outside_in_several(found, inside, outside, random.Random(seed))):
        assert not found.contains(shape)
        assert condition
        assert all(LEAST[axis] <= size <= LARGEST_SIZE for axis, size in shape.items())


@given(domains(), shapes())
def test_a_shape_inside_is_its_own_nearest(found: KernelDomain, shape: Sizes) -> None:
    if found.contains(shape):
        assert nearest_inside(found, shape, {}) == shape


def test_the_nearest_multiple_is_taken() -> None:
    tiles = domain("m % 128 == 0, k % 64 == 0")
    assert nearest_inside(tiles, {"m": 3, "k": 129, "n": 7}, INSIDE) == {"m": 128, "k": 128, "n": 7}


def test_a_broken_relation_is_repaired() -> None:
    assert nearest_inside(domain("n % k == 0"), {"m": 1, "k": 8, "n": 21}, INSIDE)["n"] == 16
    assert nearest_inside(domain("m * n <= 100"), {"m": 1000, "k": 1, "n": 10}, INSIDE) == {"m": 10, "k": 1, "n": 10}
    assert nearest_inside(domain("m <= k"), {"m": 9, "k": 4, "n": 1}, INSIDE)["m"] == 4


def test_edges_are_the_smallest_the_largest_and_their_neighbours() -> None:
    found = edge_shapes(domain("k <= 1000, k % 8 == 0"), INSIDE, as_it_is)
    assert {shape["k"] for shape in found} == {8, 16, 992, 1000}


def test_every_size_of_a_closed_list_is_an_edge() -> None:
    found = edge_shapes(domain("k in 64|96|128"), INSIDE, as_it_is)
    assert {shape["k"] for shape in found} == {64, 96, 128}


def test_the_limit_of_a_product_is_an_edge() -> None:
    found = edge_shapes(domain("m * n <= 65536"), INSIDE, as_it_is)
    assert {"m": 256, "k": 64, "n": 256} in found
    assert {"m": 128, "k": 64, "n": 512} in found


def test_just_outside_are_the_neighbours_of_each_edge() -> None:
    below, above, off = (
        [shape["k"] for shape, _ in outside_shapes(domain(text), INSIDE, LEAST)]
        for text in ("k >= 32", "k <= 64", "k % 64 == 0")
    )
    assert below == [31]
    assert above == [65, 128, 2**16, 2**16 + 64]
    assert {65, 96, 1} <= set(off)


def test_no_rows_are_asked_outside_only_of_the_row_axis() -> None:
    assert {"m": 0, "k": 64, "n": 256} in [shape for shape, _ in outside_shapes(domain("m >= 1"), INSIDE, LEAST)]
    assert outside_shapes(domain("k >= 1"), INSIDE, LEAST) == []


def test_a_domain_of_four_shapes_is_narrow() -> None:
    four = domain("m in 128, k in 32|64, n in 128|256")
    assert not holds_at_least(four, INSIDE, 5)
    assert holds_at_least(four, INSIDE, 4)
    assert holds_at_least(domain("m in 128, k in 32|64"), INSIDE, 5)
    assert not holds_at_least(domain("m * k * n <= 1, n in 1|2|3|4|5"), {"m": 1, "k": 1, "n": 1}, 5)


def test_several_axes_lie_outside_at_once() -> None:
    tiles = domain("m % 128 == 0, k % 64 == 0")
    outside = outside_shapes(tiles, INSIDE, LEAST)
    found = outside_in_several(tiles, INSIDE, outside, random.Random(1))
    assert len(found) > 4
    assert all(shape["m"] % 128 and shape["k"] % 64 for shape, _ in found)
    one_axis = [(shape, condition) for shape, condition in outside if shape["m"] == INSIDE["m"]]
    assert outside_in_several(tiles, INSIDE, one_axis, random.Random(1)) == []


def test_random_sizes_outside_lie_far_above_and_between_and_differ_each_time() -> None:
    drawn = [
        {
            shape["k"]
            for shape, _ in random_outside(domain("k <= 1024, k % 64 == 0"), INSIDE, LEAST, random.Random(seed))
        }
        for seed in range(20)
    ]
    sizes = set().union(*drawn)
    assert len({frozenset(one) for one in drawn}) == 20
    assert any(size > 4096 for size in sizes)
    assert any(64 < size < 1024 for size in sizes)
    assert all(max(one) > 1024 for one in drawn)
    assert max(sizes) <= 8 * 1024
    assert {shape["n"] for shape, _ in random_outside(domain("m <= n"), INSIDE, LEAST, random.Random(1))} >= {256}


def test_every_combination_of_listed_sizes_is_asked_or_some_of_many() -> None:
    table = domain("m in 16|32|64, k % 64 == 0, n in 32|96")
    every = [(m, n) for m in (16, 32, 64) for n in (32, 96)]
    inside = {"m": 16, "k": 64, "n": 32}
    found = listed_shapes(table, inside, random.Random(1), 64)
    assert sorted((shape["m"], shape["n"]) for shape in found) == every
    assert {shape["k"] for shape in found} == {64}
    some = listed_shapes(table, inside, random.Random(1), 4)
    assert len({tuple(shape.values()) for shape in some}) == 4
    assert listed_shapes(domain("m in 16|32"), inside, random.Random(1), 64) == []


def test_sizes_that_sixteen_bits_take_for_others_lie_outside() -> None:
    sizes = {shape["n"] for shape, _ in outside_shapes(domain("n <= 4096"), INSIDE, LEAST)}
    assert {2**16, 2**16 + INSIDE["n"]} <= sizes
