"""The spread between sessions: estimated from known truth, unknown from too few, and what it excuses."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.evidence import Interval
from forge.domain.replication import ReplicatedSpeedup
from forge.lab.timing.paired_interval import interval
from forge.lab.timing.session_spread import FEWEST_REPLICATIONS, agree, session_spread, standard_error

PAIRS = 5


def session(rng: random.Random, *, truth: float, tau: float, noise: float) -> Interval:
    """One session's interval: its own offset, and five process pairs."""
    offset = rng.gauss(truth, tau)
    return interval([rng.gauss(offset, noise) for _ in range(PAIRS)])


def compared(first: Interval, second: Interval, *, spread: float = 0.02) -> ReplicatedSpeedup:
    sides = {"first": first, "second": second, "first_pairs": PAIRS, "second_pairs": PAIRS}
    return ReplicatedSpeedup.model_validate(
        {"regime": "cold", "baseline": "eager", "session_spread": spread, "replications": 0, **sides}
    )


def simulated(count: int, *, tau: float, noise: float) -> list[ReplicatedSpeedup]:
    rng = random.Random(7)
    truths = [rng.uniform(0.1, 0.8) for _ in range(count)]
    pairs = [[session(rng, truth=one, tau=tau, noise=noise) for _ in range(2)] for one in truths]
    return [compared(first, second) for first, second in pairs]


@pytest.mark.parametrize("tau", [0.005, 0.02])
def test_the_estimate_finds_the_spread_that_the_sessions_have(tau):
    found = session_spread(simulated(2000, tau=tau, noise=0.003))
    assert found is not None
    assert found.replications == 2000
    assert found.tau == pytest.approx(tau, rel=0.1)
    assert found.difference == pytest.approx(1.96 * math.sqrt(2) * tau, rel=0.15)


def test_noise_within_a_session_is_not_spread_between_sessions():
    found = session_spread(simulated(2000, tau=0.0, noise=0.02))
    assert found is not None
    assert found.tau < 0.004


def test_fewer_than_ten_replications_say_nothing():
    assert session_spread(simulated(FEWEST_REPLICATIONS - 1, tau=0.01, noise=0.003)) is None
    assert session_spread(simulated(FEWEST_REPLICATIONS, tau=0.01, noise=0.003)) is not None


def test_a_standard_error_is_the_one_that_made_the_interval():
    logs = [0.10, 0.12, 0.11, 0.13, 0.09]
    mean = sum(logs) / 5
    wanted = math.sqrt(sum((one - mean) ** 2 for one in logs) / 4) / math.sqrt(5)
    assert standard_error(interval(logs), 5) == pytest.approx(wanted)


def ends(ratio: float, half: float) -> Interval:
    return Interval(ratio=ratio, low=ratio * math.exp(-half), high=ratio * math.exp(half))


@given(
    ratio=st.floats(0.5, 5), shift=st.floats(-0.3, 0.3), halves=st.tuples(st.floats(0, 0.1), st.floats(0, 0.1)),
    spread=st.floats(0.001, 0.1),
)  # fmt: skip
def test_two_measurements_agree_if_their_distance_is_within_both_intervals_and_the_spread(
    ratio, shift, halves, spread
):
    first, second = ends(ratio, halves[0]), ends(ratio * math.exp(shift), halves[1])
    distance = abs(shift) - sum(halves) - math.log1p(spread)
    if abs(distance) > 1e-9:
        assert agree(compared(first, second, spread=spread)) is (distance < 0)
        assert agree(compared(second, first, spread=spread)) is (distance < 0)


@pytest.mark.parametrize(
    ("second", "kernel_ratio", "agrees"),
    [
        *((2.0, same, True) for same in (0.99, 1.01)),
        *((2.0, other, False) for other in (0.97, 1.03, None)),
        *((1.2, other, False) for other in (1.0, 1.25)),
    ],
)
def test_a_slower_baseline_contradicts_nothing_if_the_kernels_own_time_is_the_same(second, kernel_ratio, agrees):
    one = compared(ends(1.5, 0.001), ends(second, 0.001)).model_copy(update={"kernel_ratio": kernel_ratio})
    assert agree(one) is agrees
