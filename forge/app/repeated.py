"""What a phase answers that is given again after its event was recorded: the same as the first time.

A command may be killed after its commit and before its answer; nothing is judged, timed or recorded again then.
"""

from pathlib import Path

from forge.app.runs import task_of
from forge.events import (
    BenchmarkFailed,
    BenchmarkRecorded,
    CandidateRejected,
    CandidateVerified,
    Event,
    KernelPromoted,
    PromotionDenied,
)
from forge.pipeline import candidate
from forge.projections.runs import RunState


def submission(run: RunState, folder: Path, *, author: str) -> Event | None:
    """The recorded submission, if `folder` holds what was submitted; None where this would be another one."""
    if run.submitted is None or run.state in ("prompt_ready", "aborted"):
        return None
    offered = candidate.submit(
        folder, task=task_of(run), run_id=run.run_id, untrusted_author=author, judged_before={}
    ).events[0]
    recorded = run.submitted.event
    # an event of an earlier version lacks what was added since; the bytes and their author make a submission
    same = getattr(offered, "candidate", None) == recorded.candidate
    return recorded if same and getattr(offered, "author", None) == recorded.author else None


def judgement(run: RunState, *, again: bool) -> CandidateVerified | CandidateRejected | None:
    """The judgement that ended the phase; with `again`, only one that was made anew."""
    if run.state == "rejected" and run.rejection is not None:
        event: CandidateVerified | CandidateRejected = run.rejection.event
    elif run.state in ("verified", "benchmarked", "failed", "promoted", "denied") and run.verified is not None:
        event = run.verified.event
    else:
        return None
    return None if again and event.reused_seq is not None else event


def timing(run: RunState) -> BenchmarkRecorded | BenchmarkFailed | None:
    """The benchmark that ended the phase."""
    if run.state in ("benchmarked", "promoted", "denied") and run.benchmark is not None:
        return run.benchmark.event
    return run.failure.event if run.state == "failed" and run.failure is not None else None


def decision(run: RunState) -> KernelPromoted | PromotionDenied | None:
    """The decision that the run ended with."""
    return run.promotion.event if run.state in ("promoted", "denied") and run.promotion is not None else None
