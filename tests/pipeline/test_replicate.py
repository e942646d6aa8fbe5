"""What a second measurement says of the first: the rule again, and the difference that sessions may make."""

import dataclasses

import orjson
import pytest

from forge.domain.digest import sha256
from forge.domain.evidence import Interval
from forge.domain.replication import ReplicatedSpeedup
from forge.domain.verdict import Reason
from forge.events import BenchmarkRecorded, KernelPromoted, ReplicationRecorded
from forge.lab.timing.session_spread import FEWEST_REPLICATIONS
from forge.ledger.audit.replicated import replication_differences
from forge.pipeline import replicate
from forge.pipeline.job import RecordedCandidate
from forge.pipeline.promote import promote
from forge.pipeline.replicate import ReplicatedKernel, allowed_spread
from forge.pipeline.samples import Samples, render_samples
from forge.pipeline.timings import Measured
from tests.app.prepared import samples
from tests.pipeline.making import POLICY, WALL, case, confirmed, made, over_eager, timing
from tests.projections.values import digest


def kernel(*, first: float = 1.6, earlier: tuple[ReplicatedSpeedup, ...] = (), pairs: int = 3) -> ReplicatedKernel:
    """A kernel that was promoted at a ratio, known within 2 %."""
    ratio = over_eager(ratio=first, low=first * 0.98, high=first * 1.02, pairs_lost=0)
    again = confirmed().model_copy(update={"speedups": ratio})
    found = case(benchmark={"workloads": (timing(confirmation=again),)})
    promoted = promote(found, earlier_versions=0)
    assert isinstance(promoted, KernelPromoted)
    evidence = RecordedCandidate(
        run_id="r",
        task=found.task,
        held_out=None,  # nothing here asks for other shapes
        submitted=found.submitted,
        files={},
        policy=POLICY.model_copy(update={"process_pairs": pairs}),
        environment=found.environment,
        isolation=WALL,
        gates_sha256=digest("gates"),
        attempt=1,
        retry_of=None,
    )
    return ReplicatedKernel(
        promoted=promoted, first=found.benchmark, evidence=evidence, process_sha256=digest("p"), earlier=earlier
    )


def concluded(kernel: ReplicatedKernel, taken: Samples) -> ReplicationRecorded:
    outcome = replicate.conclude(kernel, Measured(samples=taken, floor_ns=1000.0, claims={}))
    (event,) = outcome.events
    assert isinstance(event, ReplicationRecorded)
    stored = {sha256(one) for one in outcome.blobs}
    assert {event.report_sha256, *(one.samples_sha256 for one in event.workloads)} <= stored
    return event


def at(ratio: float) -> Samples:
    return samples(candidate_ns=100_000 / ratio, eager_ns=100_000)


def test_a_measurement_near_the_first_holds():
    event = concluded(kernel(), at(1.61))
    assert (event.outcome, event.reason) == ("held", None)
    (one,) = event.comparisons
    assert one.second.ratio == pytest.approx(1.61, rel=1e-3)
    assert (one.first.ratio, one.first_pairs, one.second_pairs) == (1.6, 5, 3)
    assert (one.session_spread, one.replications) == (POLICY.control_half_width, 0)


@pytest.mark.parametrize(("ratio", "code"), [(1.09, "TOO_SLOW"), (1.3, "NOT_REPLICATED"), (2.0, "NOT_REPLICATED")])
def test_a_measurement_below_the_threshold_or_far_from_the_first_contradicts_it(ratio, code):
    event = concluded(kernel(), at(ratio))
    assert event.outcome == "contradicted"
    assert event.reason is not None
    assert event.reason.code == code
    assert event.workloads, "both measurements are shown"


@pytest.mark.parametrize(
    ("longer", "outcome"), [(1.0, "held"), (1.01, "held"), (1.05, "contradicted"), (0.95, "contradicted")]
)
def test_a_slower_baseline_beside_a_kernel_of_the_same_speed_leaves_the_smaller_ratio(longer, outcome):
    first = first_of(kernel()).workloads[0].confirmation
    own_ns = first.candidate.median_ns * longer
    slower = samples(candidate_ns=own_ns, eager_ns=2 * own_ns)
    event = concluded(kernel(), slower)
    assert (event.outcome, event.comparisons[0].kernel_ratio) == (outcome, pytest.approx(longer, rel=1e-3))
    documents = [one.model_dump(mode="json") for one in (event, first_of(kernel()))]
    task, policy = made().model_dump(mode="json"), kernel().evidence.policy.model_dump(mode="json")
    stored = orjson.loads(render_samples(slower))
    assert list(replication_differences(*documents, task, policy, stored)) == []
    told = {**documents[0], "comparisons": [{**documents[0]["comparisons"][0], "kernel_ratio": 1.2}]}
    assert "comparisons.kernel_ratio" in [
        name for name, *_ in replication_differences(told, documents[1], task, policy, stored)
    ]


def test_a_contradiction_says_how_long_each_side_took():
    event = concluded(kernel(), at(2.0))
    first, second = kernel().first.event.workloads[0], event.workloads[0]
    for measured in (first.confirmation or first, second):
        baseline = next(one for one in measured.speedups if one.baseline == kernel().promoted.baseline)
        told = f"{measured.candidate.median_ns / 1000:.2f} us against {baseline.baseline_median_ns / 1000:.2f} us"
        assert told in event.reason.message


@pytest.mark.parametrize(("ratio", "outcome"), [(1.2, "inconclusive"), (0.9, "contradicted")])
def test_a_wide_interval_that_holds_the_threshold_gives_no_verdict(ratio, outcome):
    wide = samples(candidate_ns=100_000, eager_ns=100_000 * ratio, pairs=3)
    (attempt,) = wide.attempts
    noise = (0.9, 1.0, 1.1) if ratio > 1 else (0.99, 1.0, 1.01)
    pairs = tuple(
        tuple({**one, "candidate": round(one["candidate"] * factor)} for one in rounds)
        for factor, rounds in zip(noise, attempt.pairs, strict=True)
    )
    noisy = Samples((dataclasses.replace(attempt, pairs=pairs),))
    event = concluded(kernel(first=1.2 if ratio > 1 else 1.6), noisy)
    assert event.outcome == outcome, event.reason
    documents = [one.model_dump(mode="json") for one in (event, first_of(kernel(first=1.2 if ratio > 1 else 1.6)))]
    task, policy = made().model_dump(mode="json"), kernel().evidence.policy.model_dump(mode="json")
    stored = orjson.loads(render_samples(noisy))
    assert list(replication_differences(*documents, task, policy, stored)) == []


def first_of(kernel: ReplicatedKernel) -> BenchmarkRecorded:
    return kernel.first.event


def test_too_few_process_pairs_give_no_verdict():
    event = concluded(kernel(pairs=64), at(1.6))
    assert (event.outcome, event.reason and event.reason.code) == ("inconclusive", "NOISE_TOO_HIGH")


def test_times_that_are_not_above_zero_give_no_verdict_and_no_figures():
    event = concluded(kernel(), samples(candidate_ns=-1.0))
    assert (event.outcome, event.workloads, event.comparisons) == ("inconclusive", (), ())


@pytest.mark.parametrize(
    ("code", "outcome"),
    [("INCORRECT_NUMERICAL", "contradicted"), ("TIMEOUT", "inconclusive"), ("OUT_OF_MEMORY", "inconclusive")],
)
def test_a_wrong_answer_contradicts_and_a_busy_machine_does_not(code, outcome):
    (event,) = replicate.failed(kernel(), Reason(code=code, message="as it was")).events
    assert isinstance(event, ReplicationRecorded)
    assert event.outcome == outcome


def test_the_promotions_own_policy_is_the_one_that_counts():
    found = kernel()
    assert concluded(found, at(1.6)).policy_sha256 == found.promoted.policy_sha256


def of(second: float) -> ReplicatedSpeedup:
    ends = [Interval(ratio=one, low=one * 0.999, high=one * 1.001) for one in (1.5, second)]
    return ReplicatedSpeedup(
        regime="cold",
        baseline="eager",
        first=ends[0],
        first_pairs=5,
        second=ends[1],
        second_pairs=5,
        session_spread=0.02,
        replications=0,
    )


def test_what_replications_show_makes_the_comparison_stricter_and_never_laxer():
    calm, wild = (of(1.5),) * FEWEST_REPLICATIONS, (of(1.1),) * FEWEST_REPLICATIONS
    band = POLICY.control_half_width
    assert allowed_spread((), POLICY, timing()) == (band, 0)
    assert allowed_spread(calm, POLICY, timing()) == (replicate.SMALLEST_SPREAD, FEWEST_REPLICATIONS)
    assert allowed_spread(wild, POLICY, timing()) == (band, FEWEST_REPLICATIONS)
    assert concluded(kernel(earlier=calm), at(1.66)).outcome == "contradicted"
    assert concluded(kernel(), at(1.66)).outcome == "held"
