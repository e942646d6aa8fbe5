"""Random functions under the mode in which they reach the ends of their ranges."""

from collections.abc import Callable

import pytest
import torch

from forge.guest.reach import PATTERNS, Reaching

RARE = torch.tensor([0.0, 0.98, 0.019, 0.001])
DRAWS: dict[str, tuple[Callable[[], torch.Tensor], float, float]] = {
    "randint with both ends": (lambda: torch.randint(1, 129, (20,)), 1, 128),
    "randint below": (lambda: torch.randint(50000, (4, 8)), 0, 49999),
    "randint by names": (lambda: torch.randint(low=2, high=5, size=(9,)), 2, 4),
    "randint_like": (lambda: torch.randint_like(torch.zeros(9), 2, 9), 2, 8),
    "random_": (lambda: torch.empty(9, dtype=torch.int64).random_(-3, 7), -3, 6),
    "rand": (lambda: torch.rand(9), 0, 1 - 2**-24),
    "uniform_": (lambda: torch.empty(9).uniform_(-1, 1), -1, 1),
    "bernoulli": (lambda: torch.bernoulli(torch.full((9,), 0.01)), 0, 1),
    "bernoulli_": (lambda: torch.empty(9).bernoulli_(0.99), 0, 1),
    "multinomial": (lambda: torch.multinomial(RARE, 9, replacement=True), 1, 3),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_reaches_its_smallest_and_its_largest_number(name: str) -> None:
    draw, low, high = DRAWS[name]
    found = {}
    for pattern in PATTERNS:
        torch.manual_seed(1)
        with Reaching(pattern):
            found[pattern] = draw().double()
    assert bool((found["lowest"] == low).all())
    assert torch.allclose(found["highest"], torch.tensor(float(high)).double())
    for pattern in ("ends", "end_rows"):
        assert float(found[pattern].min()) == low
        assert float(found[pattern].max()) == pytest.approx(high)


def test_what_is_computed_from_the_numbers_keeps_its_structure() -> None:
    with Reaching("highest"):
        start = torch.randint(0, 64, (16,))
        end = start + torch.randint(1, 65, (16,))
        offsets = torch.randint(0, 9, (8,)).cumsum(0)
    assert bool((end == 127).all())
    assert offsets.tolist() == list(range(8, 65, 8))


def test_without_ends_nothing_changes() -> None:
    torch.manual_seed(1)
    expected = torch.randn(9), torch.randperm(9), torch.rand(9)
    torch.manual_seed(1)
    with Reaching("plain"):
        plain = torch.randn(9), torch.randperm(9), torch.rand(9)
    assert all(map(torch.equal, plain, expected))
