"""Folds experiments: what each candidate showed, failures included; the view `experiments` reads this table.

ExperimentClosed says what a candidate was compared with. Runs that were decided before that event type existed have
none. For them the decision itself is read: over the baseline that counted.
"""

from forge.domain.evidence import Interval
from forge.domain.experiment import end_of, end_of_refusal
from forge.ledger.replay import Line
from forge.projections.fold import Source
from forge.projections.rows import Document, slot
from forge.projections.state import Row, State

TYPES = frozenset(
    {"CandidateSubmitted", "CandidateRejected", "BenchmarkRecorded", "BenchmarkFailed", "ExperimentClosed"}
)


def take(state: State, line: Line, _: Source) -> None:
    """Open a trial, or record how it ended; an event of a run without a candidate leaves no row."""
    run_id = line.event["run_id"]
    if line.type == "CandidateSubmitted":
        state.put("trials", _opened(line, state.get("tasks", line.event["task_id"])), run_id)
        return
    trial = state.get("trials", run_id)
    ended = _closed(line) if line.type == "ExperimentClosed" else _decided(line)
    if trial is not None and ended is not None:
        state.put("trials", {**trial, **ended, "closed_seq": line.seq, "recorded_at": line.recorded_at}, run_id)


def _opened(line: Line, task: Row | None) -> Row:
    event = line.event
    named: Row = {name: event[name] for name in ("run_id", "task_id", "candidate", "author", "hypothesis")}
    return {
        **named,
        **slot(task),
        "language": event["files"]["language"],
        "shape": task["shape"] if task else None,
        "layer": event["layer"],
        "axis": event["axis"],
        **dict.fromkeys(("parent", "against", "ended", "reason", "speedup", "low", "high")),
        "submitted_seq": line.seq,
        "decided_seq": None,
        "closed_seq": None,
        "recorded_at": line.recorded_at,
    }


def _closed(line: Line) -> Row:
    event = line.event
    found = event["conclusion"]
    return {
        "parent": event["parent"],
        "against": found["against"],
        "ended": found["ended"],
        "reason": found["reason"],
        **_figures(found["speedup"]),
        "decided_seq": event["decided_seq"],
    }


def _decided(line: Line) -> Row | None:
    """Return what the decision itself says; None if it leaves the question open."""
    event = line.event
    reason = event["reason"]["code"] if "reason" in event else None
    refused = end_of_refusal(reason, stage=event.get("stage", "benchmark")) if reason else None
    if reason and refused is None:
        return None
    counted = _counted(event) if reason in (None, "TOO_SLOW") else None
    ended = end_of(Interval.model_construct(**counted)) if counted else refused
    if ended is None:
        return None
    return {
        "against": event["baseline_used"] if counted else None,
        "ended": ended,
        "reason": reason,
        **_figures(counted),
        "decided_seq": line.seq,
    }


def _counted(event: Document) -> Document | None:
    """Return the interval over the baseline that had to be beaten, at the public workload, confirmed if it was."""
    for workload in event["workloads"][:1]:
        timed = workload.get("confirmation") or workload
        for one in timed["speedups"]:
            if one["baseline"] == event["baseline_used"]:
                found: Document = one["interval"]
                return found
    return None


def _figures(interval: Document | None) -> Row:
    if interval is None:
        return dict.fromkeys(("speedup", "low", "high"))
    return {"speedup": interval["ratio"], "low": interval["low"], "high": interval["high"]}
