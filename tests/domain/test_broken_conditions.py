"""Each condition of a domain is broken alone by some shape, where one does."""

import random

import pytest

from forge.domain.broken_conditions import broken_conditions, one_for_each
from forge.domain.domain_shapes import outside_shapes, random_outside
from forge.domain.domain_text import parse_domain
from tests.domain.domains import AXES

INSIDE = {"m": 128, "k": 64, "n": 256}
LEAST = {"m": 0, "k": 1, "n": 1}


@pytest.mark.parametrize(
    ("shape", "broken"),
    [
        ({"m": 128, "k": 64, "n": 513}, {"n <= 512", "n % 4 == 0"}),
        ({"m": 128, "k": 64, "n": 516}, {"n <= 512"}),
        ({"m": 128, "k": 64, "n": 126}, {"n % 4 == 0", "m <= n"}),
        ({"m": 128, "k": 65, "n": 256}, {"k in 64|96"}),
        ({"m": 128, "k": 64, "n": 0}, {"n <= 512 and n % 4 == 0", "m <= n"}),
        (INSIDE, set()),
    ],
)
def test_every_broken_condition_is_named(shape: dict[str, int], broken: set[str]) -> None:
    assert broken_conditions(parse_domain("n <= 512, n % 4 == 0, k in 64|96, m <= n", AXES), shape) == broken


@pytest.mark.parametrize("seed", range(20))
def test_each_condition_is_broken_alone_whatever_was_drawn(seed: int) -> None:
    domain = parse_domain("m <= 256, n >= 64, n <= 512, n % 4 == 0, k in 64|96, m <= n, m * k <= 12000", AXES)
    drawn = [*outside_shapes(domain, INSIDE, LEAST), *random_outside(domain, INSIDE, LEAST, random.Random(seed))]
    random.Random(seed).shuffle(drawn)
    found = one_for_each(domain, drawn)
    assert {condition for _, condition in found} >= {
        *("m <= 256", "n >= 64", "n <= 512", "n % 4 == 0", "k in 64|96", "m <= n", "m * k <= 12000")
    }
    alone = {condition for shape, condition in found if broken_conditions(domain, shape) == {condition}}
    assert alone >= {"n <= 512", "n % 4 == 0", "k in 64|96", "m <= n", "m * k <= 12000"}
