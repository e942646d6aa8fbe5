"""How an experiment ended: against its parent where the two can be compared, else against what counted."""

import pytest

from forge.domain.evidence import Interval, Speedup
from forge.domain.verdict import UNDECIDED, Reason, ReasonCode
from forge.events import BenchmarkFailed, BenchmarkRecorded, CandidateRejected, CandidateSubmitted, ExperimentClosed
from forge.pipeline.experiment import Parent, close
from tests.projections.histories import Run, opened
from tests.projections.values import digest, task

PARENT = digest("parent")


def run() -> Run:
    return Run(opened(), task(op="rmsnorm"), "a").start().submit().verify()


def submitted(made: Run, *, axis: str | None = None) -> CandidateSubmitted:
    event = next(one.event for one in made.history.events if isinstance(one.event, CandidateSubmitted))
    return event.model_copy(update={"layer": "L3" if axis else None, "axis": axis, "parents": (PARENT,)})


def timed(ratio: float = 1.5, *, promoted: float | None = None) -> tuple[Run, BenchmarkRecorded]:
    """A benchmark over eager, and over the promoted kernel where there is one."""
    made = run().benchmark(ratio=ratio)
    event = made.history.events[-1].event
    assert isinstance(event, BenchmarkRecorded)
    if promoted is None:
        return made, event
    (workload,) = event.workloads
    rival = Speedup(
        baseline="promoted",
        baseline_median_ns=1000.0,
        interval=Interval(ratio=promoted, low=promoted * 0.99, high=promoted * 1.01),
        pairs_lost=0,
    )
    changed = workload.model_copy(update={"speedups": (*workload.speedups, rival)})
    return made, event.model_copy(update={"workloads": (changed,)})


def closed(
    made: Run, event: BenchmarkRecorded | BenchmarkFailed | CandidateRejected, *parents: Parent
) -> ExperimentClosed:
    found = close(submitted(made, axis="vector_width"), event, decided_seq=9, parents=parents)
    assert found is not None
    assert (found.layer, found.axis, found.decided_seq) == ("L3", "vector_width", 9)
    return found


@pytest.mark.parametrize(("ratio", "ended"), [(1.5, "improved"), (1.01, "no_change"), (0.8, "regressed")])
def test_without_a_parent_the_baseline_that_counted_decides(ratio: float, ended: str) -> None:
    found = closed(*timed(ratio))
    assert (found.conclusion.ended, found.conclusion.against, found.parent) == (ended, "eager", None)
    assert found.conclusion.speedup is not None
    assert found.conclusion.speedup.ratio == ratio


def test_the_promoted_kernel_comes_before_a_baseline() -> None:
    found = closed(*timed(1.5, promoted=0.9))
    assert (found.conclusion.ended, found.conclusion.against) == ("regressed", "promoted")


def test_a_parent_comes_before_both_by_speedups_over_one_baseline() -> None:
    made, event = timed(1.5, promoted=0.9)
    _, slower = timed(1.2)
    found = closed(made, event, Parent(candidate=PARENT, timed=slower, promoted=False))
    assert (found.conclusion.ended, found.conclusion.against, found.parent) == ("improved", "parent", PARENT)
    assert found.conclusion.speedup is not None
    assert found.conclusion.speedup.ratio == pytest.approx(1.5 / 1.2)
    alike = closed(made, event, Parent(candidate=PARENT, timed=timed(1.48)[1], promoted=False))
    assert alike.conclusion.ended == "no_change"


def test_a_parent_that_is_promoted_was_timed_in_turn() -> None:
    made, event = timed(1.5, promoted=0.9)
    found = closed(made, event, Parent(candidate=PARENT, timed=timed(1.2)[1], promoted=True))
    assert (found.conclusion.ended, found.parent) == ("regressed", PARENT)
    assert found.conclusion.speedup is not None
    assert found.conclusion.speedup.ratio == 0.9


def test_a_parent_that_was_never_timed_is_no_measure() -> None:
    made, event = timed(1.5)
    found = closed(made, event, Parent(candidate=PARENT, timed=None, promoted=False))
    assert (found.conclusion.against, found.parent) == ("eager", None)


def test_too_slow_to_be_promoted_may_still_be_an_improvement_and_says_both() -> None:
    made, event = timed(1.05)
    failed = made.fail("TOO_SLOW").history.events[-1].event
    assert isinstance(failed, BenchmarkFailed)
    found = closed(made, failed.model_copy(update={"workloads": event.workloads}))
    assert (found.conclusion.ended, found.conclusion.reason) == ("improved", "TOO_SLOW")


@pytest.mark.parametrize("code", ["BELOW_FLOOR", "RUNTIME_ERROR"])
def test_a_time_that_is_not_believed_gives_no_figure(code: ReasonCode) -> None:
    made = run().fail(code)
    event = made.history.events[-1].event
    assert isinstance(event, BenchmarkFailed)
    found = closed(made, event)
    assert (found.conclusion.ended, found.conclusion.reason) == ("incorrect", code)
    assert (found.conclusion.against, found.conclusion.speedup) == (None, None)


@pytest.mark.parametrize("code", sorted(UNDECIDED))
def test_what_says_nothing_about_the_candidate_closes_nothing(code: ReasonCode) -> None:
    made = run().fail(code)
    event = made.history.events[-1].event
    assert isinstance(event, BenchmarkFailed)
    assert close(submitted(made), event, decided_seq=9, parents=()) is None


@pytest.mark.parametrize(
    ("stage", "code", "ended"),
    [("verify", "INCORRECT_NUMERICAL", "incorrect"), ("build", "COMPILE_ERROR", "build_failed")],
)
def test_a_refusal_closes_it_too(stage: str, code: ReasonCode, ended: str) -> None:
    made = run()
    event = CandidateRejected.model_validate(
        {**made.ids, "stage": stage, "reason": Reason(code=code, message="as it was")}
    )
    assert closed(made, event).conclusion.ended == ended
