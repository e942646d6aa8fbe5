"""The interval contains the truth as often as it says, and a side against itself is itself."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.evidence import Interval
from forge.lab.timing.paired_interval import interval, pair_ratios, summarise, within_band
from forge.lab.timing.student_t import t_975

times = st.floats(min_value=1.0, max_value=1e9)
measured = st.lists(st.lists(times, min_size=4, max_size=4), min_size=2, max_size=8)


def student_cdf(t: float, degrees: int) -> float:
    """By Simpson's rule over the density."""
    norm = math.gamma((degrees + 1) / 2) / (math.sqrt(degrees * math.pi) * math.gamma(degrees / 2))
    steps = 4000
    width = t / steps
    heights = [norm * (1 + (i * width) ** 2 / degrees) ** (-(degrees + 1) / 2) for i in range(steps + 1)]
    return 0.5 + width / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))


@pytest.mark.parametrize("degrees", [*range(3, 41), 99, 200])
def test_the_quantile_is_students(degrees: int) -> None:
    assert student_cdf(t_975(degrees), degrees) == pytest.approx(0.975, abs=1e-10)


@pytest.mark.parametrize(
    ("degrees", "exact"),
    [
        (1, math.tan(0.475 * math.pi)),
        (2, 0.95 * math.sqrt(2 / (1 - 0.95**2))),
        (4, 2.7764451051977987),
        (9, 2.2621571627982053),
        (30, 2.0422724563012373),
    ],
)
def test_the_quantile_has_the_digits_of_its_closed_forms_and_of_printed_tables(degrees: int, exact: float) -> None:
    assert t_975(degrees) == pytest.approx(exact, rel=1e-12)


def test_many_degrees_come_near_the_normal_quantile_and_none_is_refused() -> None:
    normal = statistics.NormalDist().inv_cdf(0.975)
    assert normal < t_975(20_000) < normal * 1.0001
    with pytest.raises(ValueError, match="expected at least 1"):
        t_975(0)


@given(degrees=st.integers(1, 300))
def test_the_quantile_falls_with_the_degrees(degrees: int) -> None:
    assert t_975(degrees + 1) < t_975(degrees)


@pytest.mark.parametrize("pairs", [2, 5, 10])
def test_the_interval_contains_the_truth_in_about_95_per_cent(pairs: int) -> None:
    rng = random.Random(20 + pairs)
    truth, trials = math.log(1.3), 4000
    covered = 0
    for _ in range(trials):
        found = interval([rng.gauss(truth, 0.05) for _ in range(pairs)])
        covered += found.low <= 1.3 <= found.high
    assert 0.95 - 0.012 < covered / trials < 0.95 + 0.012


def test_the_effect_of_processes_is_covered_though_rounds_agree() -> None:
    """Each process has its own offset, shared by all of its rounds: more rounds must not narrow the interval."""
    rng = random.Random(7)
    covered = 0
    for _ in range(500):
        baseline, other = [], []
        for _ in range(5):
            offset = rng.gauss(0, 0.05)
            baseline.append([1.3 * math.exp(offset + rng.gauss(0, 0.002)) for _ in range(20)])
            other.append([math.exp(rng.gauss(0, 0.002)) for _ in range(20)])
        found = interval(pair_ratios(baseline, other))
        covered += found.low <= 1.3 <= found.high
    assert 0.92 < covered / 500 < 0.98


@given(measured)
def test_a_side_against_itself_is_exactly_one(samples: list[list[float]]) -> None:
    found = interval(pair_ratios(samples, samples))
    assert (found.low, found.ratio, found.high) == (1.0, 1.0, 1.0)
    assert within_band(found, 0.01)


@given(measured, st.data())
def test_low_is_at_most_the_ratio_and_the_ratio_at_most_high(
    baseline: list[list[float]], data: st.DataObject
) -> None:
    other = data.draw(
        st.lists(st.lists(times, min_size=4, max_size=4), min_size=len(baseline), max_size=len(baseline))
    )
    ratios = pair_ratios(baseline, other)
    half = t_975(len(ratios) - 1) * (max(ratios) - min(ratios))
    if abs(sum(ratios)) + half < 300:
        found = interval(ratios)
        assert found.low <= found.ratio <= found.high


@given(measured, st.floats(0.1, 10))
def test_a_side_that_takes_a_constant_factor_longer_has_that_ratio(samples: list[list[float]], factor: float) -> None:
    slower = [[value * factor for value in rounds] for rounds in samples]
    assert interval(pair_ratios(slower, samples)).ratio == pytest.approx(factor, rel=1e-9)


@given(measured)
def test_percentiles_stand_in_order(samples: list[list[float]]) -> None:
    timing = summarise(samples, "host_slope")
    assert timing.p10_ns <= timing.median_ns <= timing.p90_ns
    assert timing.n == sum(len(rounds) for rounds in samples)


def test_a_control_that_reaches_out_of_the_band_is_outside() -> None:
    assert within_band(Interval(ratio=1.0, low=0.96, high=1.04), 0.05)
    assert not within_band(Interval(ratio=1.0, low=0.94, high=1.04), 0.05)
    assert not within_band(Interval(ratio=1.0, low=0.96, high=1.06), 0.05)
