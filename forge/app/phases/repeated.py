"""Answers a phase that was recorded before with the recorded event.

A command may be killed after its commit and before its answer. If it is repeated, nothing is judged, timed or
recorded again.
"""

from pathlib import Path

from forge.app.runs.states import task_of
from forge.events import (
    BenchmarkFailed,
    BenchmarkRecorded,
    CandidateRejected,
    CandidateVerified,
    Event,
    KernelPromoted,
    PromotionDenied,
)
from forge.pipeline.submit import submit
from forge.projections.runs import RunState


def submission(run: RunState, folder: Path, *, author: str) -> Event | None:
    """Return the recorded submission if `folder` holds the same candidate; None otherwise."""
    if run.submitted is None or run.state in ("prompt_ready", "aborted"):
        return None
    submission_now = submit(
        folder, task=task_of(run), run_id=run.run_id, untrusted_author=author, judged_before=lambda _: None
    ).events[0]
    recorded = run.submitted.event
    # an event of an earlier version lacks newer fields, so only the bytes and the author are compared
    same = getattr(submission_now, "candidate", None) == recorded.candidate
    return recorded if same and getattr(submission_now, "author", None) == recorded.author else None


def judgement(run: RunState, *, again: bool) -> CandidateVerified | CandidateRejected | None:
    """Return the judgement that ended the phase; with `again`, only one that wasn't reused."""
    if run.state == "rejected" and run.rejection is not None:
        event: CandidateVerified | CandidateRejected = run.rejection.event
    elif run.state in ("verified", "benchmarked", "failed", "promoted", "denied") and run.verified is not None:
        event = run.verified.event
    else:
        return None
    return None if again and event.reused_seq is not None else event


def timing(run: RunState) -> BenchmarkRecorded | BenchmarkFailed | None:
    """Return the benchmark that ended the phase."""
    if run.state in ("benchmarked", "promoted", "denied") and run.benchmark is not None:
        return run.benchmark.event
    return run.failure.event if run.state == "failed" and run.failure is not None else None


def decision(run: RunState) -> KernelPromoted | PromotionDenied | None:
    """Return the decision that ended the run; None if none did."""
    return run.promotion.event if run.state in ("promoted", "denied") and run.promotion is not None else None
