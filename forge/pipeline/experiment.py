"""Closes experiments: compares a decided candidate with its parent, the incumbent or a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from forge.domain.digest import Digest
from forge.domain.evidence import Interval
from forge.domain.experiment import Against, Conclusion, end_of, end_of_refusal, over
from forge.domain.policy import BaselineKind
from forge.domain.verdict import ReasonCode
from forge.events import BenchmarkFailed, BenchmarkRecorded, CandidateRejected, CandidateSubmitted, ExperimentClosed

Timed = BenchmarkRecorded | BenchmarkFailed
Decision = CandidateRejected | Timed


@dataclass(frozen=True)
class Parent:
    """A candidate that this one was made from, and its latest benchmark."""

    candidate: Digest
    timed: Timed | None
    """Latest benchmark of the parent for the same task on the same kind of machine. None: it has none."""
    promoted: bool
    """True if it was the incumbent at the decision, so that the two were timed in turn."""


def close(
    submitted: CandidateSubmitted, decision: Decision, *, decided_seq: int, parents: Sequence[Parent]
) -> ExperimentClosed | None:
    """Return how a candidate's experiment ended; None if the decision says nothing about the change."""
    reason = None if isinstance(decision, BenchmarkRecorded) else decision.reason.code
    stage = decision.stage if isinstance(decision, CandidateRejected) else "benchmark"
    refused = end_of_refusal(reason, stage=stage) if reason is not None else None
    if reason is not None and refused is None:
        return None
    parent, conclusion = None, None
    if not isinstance(decision, CandidateRejected) and reason in (None, "TOO_SLOW"):
        parent, conclusion = _compared(decision, reason, parents)
    stopped = decision.stopped if isinstance(decision, BenchmarkFailed) else None
    if conclusion is None and stopped is not None:
        conclusion = Conclusion(ended="regressed", reason=reason, against=stopped.baseline, speedup=None)
    if conclusion is None:
        if refused is None:
            return None
        conclusion = Conclusion(ended=refused, reason=reason, against=None, speedup=None)
    return ExperimentClosed(
        run_id=submitted.run_id,
        task_id=submitted.task_id,
        candidate=submitted.candidate,
        parent=parent,
        layer=submitted.layer,
        axis=submitted.axis,
        conclusion=conclusion,
        decided_seq=decided_seq,
    )


def _compared(
    timed: Timed, reason: ReasonCode | None, parents: Sequence[Parent]
) -> tuple[Digest | None, Conclusion | None]:
    """Compare with the first comparable parent, else with the incumbent, else with the baseline to beat."""

    def concluded(against: Against, speedup: Interval) -> Conclusion:
        return Conclusion(ended=end_of(speedup), reason=reason, against=against, speedup=speedup)

    for parent in parents:
        measured = over_parent(timed, parent)
        if measured is not None:
            return parent.candidate, concluded("parent", measured)
    kinds: tuple[BaselineKind | None, ...] = ("promoted", timed.baseline_used)
    for kind in kinds:
        found = interval_over(timed, kind) if kind is not None else None
        if kind is not None and found is not None:
            return None, concluded(kind, found)
    return None, None


def over_parent(timed: Timed, parent: Parent) -> Interval | None:
    """Return the speedup over a parent, timed in turn or from both speedups over one baseline; None if neither."""
    if parent.promoted:
        in_turn = interval_over(timed, "promoted")
        if in_turn is not None:
            return in_turn
    if parent.timed is None:
        return None
    kinds = [timed.baseline_used, *(one.baseline for workload in timed.workloads[:1] for one in workload.speedups)]
    for kind in kinds:
        if kind is None or kind == "promoted":  # the incumbent may differ between the two
            continue
        own, its = interval_over(timed, kind), interval_over(parent.timed, kind)
        if own is not None and its is not None:
            return over(own, its)
    return None


def interval_over(timed: Timed, kind: BaselineKind) -> Interval | None:
    """Return the speedup over one baseline at the public workload, from the confirmation if there is one."""
    for workload in timed.workloads[:1]:
        speedups = (workload.confirmation or workload).speedups
        return next((one.interval for one in speedups if one.baseline == kind), None)
    return None
