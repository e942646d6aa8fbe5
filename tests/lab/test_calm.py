"""How long a process pair is measured: until the control is known well, whatever the candidate does."""

import random

import pytest

from forge.domain.policy import Policy
from forge.lab.timing.cpu_processes import HARNESS
from forge.lab.timing.slope import calm

PATH_NS, WORK_NS = 50_000, 5_000_000
USUAL = Policy().calm_within


def rounds(count: int, spread: float, *, candidate_spread: float = 0.0) -> list[dict[str, float]]:
    """Rounds in which each side's work varies by so much, normally."""
    rng = random.Random(3)
    spreads = {"eager": spread, "control": spread, "candidate": candidate_spread}
    return [
        {HARNESS: PATH_NS} | {side: PATH_NS + WORK_NS * (1 + rng.gauss(0, wide)) for side, wide in spreads.items()}
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "spread", "enough"),
    [(12, 0.01, True), (12, 0.03, True), (12, 0.1, False), (12, 0.2, False), (48, 0.1, False), (96, 0.1, True)],
)
def test_a_pair_is_measured_for_longer_where_its_control_is_noisy(count: int, spread: float, enough: bool) -> None:
    assert calm(rounds(count, spread), USUAL) is enough


@pytest.mark.parametrize(("half_width", "enough"), [(1e-12, False), (0.05, False), (0.1, True), (0.5, True)])
def test_a_wide_band_needs_fewer_rounds_and_a_narrow_one_no_more(half_width: float, enough: bool) -> None:
    assert calm(rounds(12, 0.06), Policy(control_half_width=half_width).calm_within) is enough
    assert calm(rounds(12, 0.01), Policy(control_half_width=half_width).calm_within)


def test_the_candidates_own_noise_has_no_say() -> None:
    assert calm(rounds(12, 0.01, candidate_spread=3.0), USUAL)


def test_noise_larger_than_the_work_is_not_calm() -> None:
    taken = rounds(12, 0.01)
    taken[5]["control"] = PATH_NS // 2
    assert not calm(taken, USUAL)
