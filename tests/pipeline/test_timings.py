"""From samples to evidence: ratios of paired rounds, and what is particular to how they were taken."""

import math

import pytest

from forge.domain.digest import sha256
from forge.lab.timing.graph_replay import ReplaySamples
from forge.pipeline.samples import Samples
from forge.pipeline.timings import Measured, workload_timing
from tests.pipeline.test_samples import STATE

SHAPE = {"batch": 4, "hidden_size": 64}
PLAN = sha256(b"a plan")
CALLS = {"candidate": 100, "eager": 50, "control": 50, "promoted": 10}


def replays(*, candidate_ns: float = 1000.0, dropped: int = 1, states: bool = True) -> ReplaySamples:
    """Five pairs of four rounds; the pairs differ by a factor that all sides share."""
    per_call = {"candidate": candidate_ns, "eager": 2000.0, "control": 2000.0, "promoted": 1500.0}
    pairs = tuple(
        tuple({side: round(ns * CALLS[side] * (1 + pair / 10)) for side, ns in per_call.items()} for _ in range(4))
        for pair in range(5)
    )
    return ReplaySamples(
        calls=CALLS,
        pairs=pairs,
        host_ratio=(1.0, 1.01, 0.99, 1.0, 1.0),
        sets=37,
        set_bytes=4096,
        states=(STATE, STATE.model_copy(update={"power_w": 9.0})) if states else (),
        blocks=10,
        dropped=dropped,
        device_ns=2_000_000_000,
    )


def measured(samples: Samples, **more: object) -> Measured:
    return Measured(samples=samples, floor_ns=500.0, claims={}, **more)  # type: ignore[arg-type]  # a test's


def test_replays_become_ratios_with_what_was_seen_around_them() -> None:
    found = measured(Samples((replays(), replays(candidate_ns=1000.0))), plan_sha256=PLAN)
    timing = workload_timing(SHAPE, found, samples_sha256=sha256(b""))
    assert {one.baseline: one.interval.ratio for one in timing.speedups} == pytest.approx(
        {"eager": 2.0, "promoted": 1.5}
    )
    assert (timing.control.low, timing.control.high) == pytest.approx((1.0, 1.0))
    assert (timing.candidate.method, timing.process_pairs, timing.harness_ns) == ("launch_plan", 10, 0.0)
    assert timing.floor_fraction == pytest.approx(500.0 / timing.candidate.median_ns)
    assert timing.confirmation is None
    assert timing.replay is not None
    assert (timing.replay.plan_sha256, timing.replay.sets, timing.replay.set_bytes) == (PLAN, 37, 4096)
    assert (timing.replay.blocks, timing.replay.dropped, timing.replay.gpu_s) == (20, 2, 4.0)
    assert len(timing.replay.host_ratio) == 10
    assert [state.power_w for state in timing.replay.states] == [310.5, 9.0]


def test_a_driver_that_says_nothing_leaves_no_states() -> None:
    timing = workload_timing(
        SHAPE, measured(Samples.of(replays(states=False)), plan_sha256=PLAN), samples_sha256=sha256(b"")
    )
    assert timing.replay is not None
    assert timing.replay.states == ()


def test_a_confirmation_has_numbers_of_its_own() -> None:
    again = Samples.of(replays(candidate_ns=1250.0))
    timing = workload_timing(
        SHAPE, measured(Samples.of(replays()), plan_sha256=PLAN, confirmation=again), samples_sha256=sha256(b"")
    )
    assert timing.confirmation is not None
    confirmed = {one.baseline: one.interval.ratio for one in timing.confirmation.speedups}
    assert confirmed == pytest.approx({"eager": 1.6, "promoted": 1.2})
    assert timing.confirmation.candidate.median_ns == pytest.approx(1.25 * timing.candidate.median_ns)
    assert timing.confirmation.process_pairs == 5


def test_a_pair_that_the_candidate_lost_is_counted() -> None:
    lost = replays(candidate_ns=2000.0)
    timing = workload_timing(SHAPE, measured(Samples.of(lost), plan_sha256=PLAN), samples_sha256=sha256(b""))
    assert {one.baseline: one.pairs_lost for one in timing.speedups} == {"eager": 5, "promoted": 5}
    assert all(math.isfinite(one.interval.low) for one in timing.speedups)
