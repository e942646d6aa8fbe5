"""The rule for one workload: the first reason against it, and values that can't be built at all."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from forge.domain.another_run import IN_ANOTHER_RUN
from forge.domain.evidence import Interval, Residency, Timing, WorkloadTiming
from forge.domain.policy import Policy, TimingAuthority
from forge.events import KernelPromoted
from forge.ledger.audit.rule import first_unmet
from forge.pipeline.benchmark import undecided
from forge.pipeline.promote import promote
from forge.pipeline.promotion_rule import baseline_used, control_band, decide
from tests.pipeline.making import POLICY, case, confirmed, made, over_eager, taken, timing

TASK = made()
FLOOR = POLICY.floor_slack * 500.0


def test_a_workload_that_meets_the_rule_has_no_reason_against_it() -> None:
    assert decide(TASK, POLICY, timing(), "eager") is None
    at_the_edge = timing(low=1.1, control=(0.95, 1.05), p90_ns=FLOOR)
    assert decide(TASK, POLICY, at_the_edge, "eager") is None


@pytest.mark.parametrize(
    ("measured", "code", "said"),
    [
        (timing(control=(0.949, 1.01)), "NOISE_TOO_HIGH", "0.949 to 1.010x, allowed 0.95 to 1.05x"),
        (timing(control=(0.99, 1.051)), "NOISE_TOO_HIGH", "no verdict on this machine now"),
        (timing(p90_ns=math.nextafter(FLOOR, 0)), "BELOW_FLOOR", "less than moving the bytes takes"),
        (timing(low=math.nextafter(1.1, 0), high=1.2), "TOO_SLOW", "the lower end must reach 1.10x"),
        (timing(ratio=4.0, low=0.001, high=26602.0), "NOISE_TOO_HIGH", f"can't tell; {IN_ANOTHER_RUN}"),
        (timing(ratio=4.0, low=0.001, high=26602.0, pairs_lost=1), "NOISE_TOO_HIGH", f"can't tell; {IN_ANOTHER_RUN}"),
        (timing(pairs_lost=1), "TOO_SLOW", "in every process pair"),
        (timing(ratio=0.5, low=0.4, high=0.6), "TOO_SLOW", "0.50x over eager"),
    ],
)
def test_each_reason_against_a_workload_is_found(measured: object, code: str, said: str) -> None:
    reason = decide(TASK, POLICY, measured, "eager")  # type: ignore[arg-type]
    assert reason is not None
    assert reason.code == code
    assert said in reason.message
    assert (IN_ANOTHER_RUN in reason.message) == (IN_ANOTHER_RUN in said)


def test_noise_comes_before_every_other_reason() -> None:
    worst = timing(control=(0.5, 2.0), p90_ns=1.0, low=0.1, pairs_lost=5)
    reason = decide(TASK, POLICY, worst, "eager")
    assert reason is not None
    assert reason.code == "NOISE_TOO_HIGH"
    assert undecided(reason)


def test_a_task_may_ask_for_more_than_the_policy() -> None:
    demanding = made(minimum_speedup=1.45)
    assert decide(demanding, POLICY, timing(low=1.44), "eager") is not None
    assert decide(demanding, POLICY, timing(low=1.45), "eager") is None


@given(low=st.floats(0.01, 100), wanted=st.floats(1.1, 1000))
def test_the_lower_end_decides_and_nothing_else_about_the_interval(low: float, wanted: float) -> None:
    task = made(minimum_speedup=wanted)
    measured = timing(ratio=2 * low, low=low, high=1000 * low, confirmation=None)
    assert (decide(task, POLICY, measured, "eager") is None) == (low >= wanted)


@given(
    low=st.floats(0.5, 2),
    width=st.floats(1.001, 2),
    band=st.floats(0.01, 0.5),
    lost=st.integers(0, 2),
)
def test_only_an_interval_that_can_tell_refuses_and_the_audit_says_the_same(
    low: float, width: float, band: float, lost: int
) -> None:
    policy = POLICY.model_copy(update={"control_half_width": band, "minimum_speedup": 1.1})
    measured = timing(ratio=low, low=low, high=width * low, pairs_lost=lost, confirmation=None)
    reason = decide(TASK, policy, measured, "eager")
    if reason is not None and reason.code == "TOO_SLOW":
        assert lost or low < 1.1
        assert not low < 1.1 <= width * low or math.log(width) / 2 <= band * (1 + 1e-9)
    else:
        assert (reason is None) == (low >= 1.1 and not lost)
    assert audit_agrees(policy, measured)


def audit_agrees(policy: Policy, measured: WorkloadTiming) -> bool:
    """Return whether the audit gives the reason of the rule."""
    reason = decide(TASK, policy, measured, "eager")
    documents = [one.model_dump(mode="json") for one in (TASK, policy, measured)]
    unmet = first_unmet(*documents, "eager")
    return (reason and reason.code) == (unmet and unmet.code)


figures = st.fixed_dictionaries(
    {},
    optional={
        "low": st.sampled_from([0.9, 1.05, 1.09, 1.1, 1.4]),
        "pairs_lost": st.integers(0, 1),
        "p90_ns": st.sampled_from([math.nextafter(FLOOR, 0), FLOOR]),
        "process_pairs": st.sampled_from([POLICY.process_pairs - 1, POLICY.process_pairs]),
        "control": st.sampled_from([(0.96, 1.04), (0.97, 1.06), (0.5, 1.0)]),
        "method": st.sampled_from(["host_slope", "launch_plan"]),
    },
)


@settings(max_examples=500)
@given(first=figures, again=st.none() | figures, resident=st.none() | figures, resident_again=st.none() | figures)
def test_the_audit_gives_the_reason_of_the_rule_for_every_part_of_a_measurement(
    first: dict[str, Any], again: dict[str, Any] | None, resident: Any, resident_again: Any
) -> None:
    repeated = None if again is None else confirmed(**again)
    residency = timing().residency
    if resident is not None:
        shared = confirmed(**resident).model_dump() | {"floor_ns": 500.0, "rounds": 20}
        shared["confirmation"] = None if resident_again is None else confirmed(**resident_again)
        residency = Residency(cache_bytes=1, operand_bytes=1, timing=shared, why_not=None)
    changes = confirmed(**first).model_dump() | {"confirmation": repeated, "residency": residency}
    assert audit_agrees(POLICY, WorkloadTiming.model_validate(timing().model_dump() | changes))


@given(low=st.floats(0.01, 10), lost=st.integers(0, 2), half_width=st.floats(0.01, 0.1))
def test_a_confirmation_must_meet_the_rule_once_more(low: float, lost: int, half_width: float) -> None:
    again = confirmed(low=low, pairs_lost=lost, control=(1 - half_width, 1 + half_width))
    reason = decide(TASK, POLICY, timing(confirmation=again), "eager")
    quiet = 1 - half_width >= 1 - 0.05 and 1 + half_width <= 1 + 0.05
    told = low >= 1.1 or 1.2 * low < 1.1
    assert (reason is None) == (low >= 1.1 and lost == 0 and quiet)
    if reason is not None:
        assert reason.code == ("TOO_SLOW" if quiet and told else "NOISE_TOO_HIGH")
        assert reason.message.startswith("not confirmed on fresh data: ")


@given(
    low=st.floats(1.0, 1.3),
    p90_ns=st.floats(0.9 * FLOOR, 1.1 * FLOOR),
    process_pairs=st.integers(1, 6),
    minimum=st.floats(1.0, 1.3),
    method=st.sampled_from(["host_slope", "launch_plan"]),
)
def test_a_benchmark_and_a_promotion_never_disagree(
    low: float, p90_ns: float, process_pairs: int, minimum: float, method: TimingAuthority
) -> None:
    task = TASK.model_copy(update={"minimum_speedup": minimum})
    again = confirmed(low=low, p90_ns=p90_ns, process_pairs=process_pairs, method=method)
    for measured in (timing(confirmation=again), timing(low=low, p90_ns=p90_ns, process_pairs=process_pairs)):
        ids = {"task_id": task.task_id}
        found = case(task=task, verified=ids, benchmark={**ids, "workloads": (measured,)})
        promoted = promote(found, earlier_versions=0)
        assert (decide(task, POLICY, measured, "eager") is None) == isinstance(promoted, KernelPromoted)


def test_a_confirmation_below_the_floor_is_refused_where_it_is_measured() -> None:
    reason = decide(TASK, POLICY, timing(confirmation=confirmed(p90_ns=math.nextafter(FLOOR, 0))), "eager")
    assert reason is not None
    assert reason.code == "BELOW_FLOOR"


def test_a_reason_against_the_first_measurement_comes_before_one_against_its_confirmation() -> None:
    reason = decide(TASK, POLICY, timing(low=1.0, confirmation=confirmed(control=(0.5, 2.0))), "eager")
    assert reason is not None
    assert reason.message.startswith("1.50x over eager")


@pytest.mark.parametrize(("method", "band"), [("host_slope", 0.05), ("launch_plan", 0.02)])
def test_a_replay_must_be_quieter_than_a_slope(method: TimingAuthority, band: float) -> None:
    assert control_band(POLICY, method) == band
    inside, outside = (1 - 0.9 * band, 1 + 0.9 * band), (1 - 1.1 * band, 1.0)
    facts = {"candidate": taken(method=method), "confirmation": confirmed(method=method)}
    assert decide(TASK, POLICY, timing(control=inside, **facts), "eager") is None
    for measured in (
        timing(control=outside, **facts),
        timing(**{**facts, "confirmation": confirmed(method=method, control=outside)}),
    ):
        reason = decide(TASK, POLICY, measured, "eager")
        assert reason is not None
        assert (reason.code, f"allowed {1 - band:.2f} to {1 + band:.2f}x" in reason.message) == (
            "NOISE_TOO_HIGH",
            True,
        )


def test_the_kernel_that_is_promoted_now_must_be_beaten_where_it_is_the_fastest() -> None:
    (eager,) = over_eager(ratio=1.5, low=1.4, high=1.6, pairs_lost=0)
    promoted = eager.model_copy(
        update={
            "baseline": "promoted",
            "baseline_median_ns": 1050.0,
            "interval": Interval(ratio=1.05, low=1.0, high=1.1),
        }
    )
    measured = timing(speedups=(eager, promoted), confirmation=None)
    assert baseline_used(TASK, measured) == "promoted"
    reason = decide(TASK, POLICY, measured, "promoted")
    assert reason is not None
    assert (reason.code, "1.05x over promoted" in reason.message) == ("TOO_SLOW", True)
    assert baseline_used(made(baseline="eager"), measured) == "eager"


@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0, 0.0])
def test_a_number_that_is_none_can_not_become_evidence(number: float) -> None:
    with pytest.raises(ValidationError):
        Interval(ratio=1.0, low=number, high=1.0)
    with pytest.raises(ValidationError):
        Timing(n=1, median_ns=1.0, p10_ns=1.0, p90_ns=number, mad_ns=0.0, method="host_slope")
    with pytest.raises(ValidationError):
        timing(floor_ns=number)
    with pytest.raises(ValidationError):
        Policy(minimum_speedup=number)
