"""What was said, held against an interval: confirmed from half its lower end to its upper end, refuted below one."""

from hypothesis import given
from hypothesis import strategies as st

from forge.events import ClaimRecorded
from forge.pipeline.claims import UNITS, assess, own_bench_claims
from tests.pipeline.making import DIGEST, confirmed, timing

ratios = st.floats(min_value=1e-3, max_value=1e3)


def claim(value: float, *, metric: str = "speedup", baseline: str = "eager") -> ClaimRecorded:
    return ClaimRecorded(
        run_id="r",
        candidate=DIGEST,
        claim_id=f"c:{metric}",
        metric=metric,
        value=value,
        unit="ratio",
        workload="b16_h4096",
        baseline=baseline,
        claimant="ada",
    )


@given(ends=st.tuples(ratios, ratios, ratios).map(sorted), value=ratios)
def test_a_claim_is_confirmed_exactly_if_it_lies_between_half_the_lower_end_and_the_upper(
    ends: list[float], value: float
) -> None:
    low, ratio, high = ends
    (assessed,) = assess([claim(value)], timing(ratio=ratio, low=low, high=high, confirmation=None), benchmark_seq=7)
    if high < 1:
        assert assessed.verdict == "refuted"
    else:
        assert (assessed.verdict == "confirmed") == (low / 2 <= value <= high)
        assert (assessed.verdict == "understated") == (value < low / 2)
        assert (assessed.verdict == "overstated") == (value > high)
    assert assessed.measured_value == ratio
    assert assessed.measured_by_seq == 7


def test_a_modest_claim_about_a_slower_kernel_is_refuted_too() -> None:
    (assessed,) = assess([claim(0.5)], timing(ratio=0.8, low=0.7, high=0.9, confirmation=None), benchmark_seq=1)
    assert assessed.verdict == "refuted"


def test_a_claim_is_held_against_what_was_confirmed() -> None:
    measured = timing(ratio=2.0, low=1.9, high=2.1, confirmation=confirmed(low=1.4))
    (assessed,) = assess([claim(2.0)], measured, benchmark_seq=1)
    assert measured.confirmation is not None
    assert assessed.verdict == "overstated"
    assert assessed.measured_value == measured.confirmation.speedups[0].interval.ratio


def test_a_claim_at_the_very_end_of_the_interval_is_confirmed() -> None:
    (assessed,) = assess([claim(1.6)], timing(ratio=1.5, low=1.4, high=1.6, confirmation=None), benchmark_seq=1)
    assert assessed.verdict == "confirmed"


def test_what_was_not_measured_can_not_be_compared() -> None:
    for one in (claim(2.0, baseline="compile"), claim(2.0, baseline="vendor"), claim(12.0, metric="candidate_us")):
        (assessed,) = assess([one], timing(confirmation=None), benchmark_seq=1)
        assert (assessed.verdict, assessed.measured_value) == ("not_comparable", None)


def test_every_claim_is_assessed_once_under_its_own_id() -> None:
    said = own_bench_claims(
        {"speedup": 1.4, "candidate_latency_us": 10.0, "baseline_latency_us": 14.0},
        run_id="r",
        candidate=DIGEST,
        family="f",
        attempt=2,
    )
    assert [one.claim_id for one in said] == [f"r:bench2:{metric}" for metric in sorted(UNITS)]
    assert {one.claimant for one in said} == {"candidate:bench.py"}
    assessed = assess(said, timing(confirmation=None), benchmark_seq=1)
    assert [one.claim_id for one in assessed] == [one.claim_id for one in said]
    assert assess((), timing(confirmation=None), benchmark_seq=1) == ()
