"""Folds history: the audit tables of tasks, machines, candidates, benchmarks and refusals."""

import math

from forge.errors import LedgerCorrupt
from forge.events.benchmark import ShapeTimed
from forge.ledger.replay import Line
from forge.projections.fold import Source, holds
from forge.projections.rows import Document, benchmark_rows, candidate_row, environment_row, rejection_row, task_row
from forge.projections.state import Row, State

TYPES = frozenset(
    {
        "TaskCreated",
        "EnvironmentCaptured",
        "CandidateSubmitted",
        "CandidateRejected",
        "PromotionDenied",
        "BenchmarkRecorded",
        "BenchmarkFailed",
        "BenchmarkInvalidated",
    }
)


def take(state: State, line: Line, source: Source) -> None:
    """Extend the tables by one event."""
    match line.type:
        case "TaskCreated":
            if state.get("tasks", line.event["task_id"]) is None:
                state.put("tasks", task_row(line), line.event["task_id"])
        case "EnvironmentCaptured":
            _take_environment(state, line)
        case "CandidateSubmitted":
            state.add("candidates", candidate_row(line, _task(state, line)))
        case "CandidateRejected":
            state.add("rejections", rejection_row(line, _task(state, line), stage=line.event["stage"]))
        case "PromotionDenied":
            state.add("rejections", rejection_row(line, _task(state, line), stage="promote"))
        case "BenchmarkInvalidated":
            _invalidate(state, line)
        case _:
            _take_benchmark(state, line, source)


def _task(state: State, line: Line) -> Row | None:
    return state.get("tasks", line.event["task_id"])


def _take_environment(state: State, line: Line) -> None:
    """Store a machine's first description; a GPU's may tell the registry's readers its architecture."""
    if state.get("environments", line.event["env_sha256"]) is None:
        row = environment_row(line)
        state.put("environments", row, line.event["env_sha256"])
        if row["gpu"] is not None:
            state.registry_changed(line)


def _take_benchmark(state: State, line: Line, source: Source) -> None:
    """Add the rows of a benchmark, and under its number those of the further shapes that it names."""
    further = [_shape_timed(source, seq, before=line.seq) for seq in line.event.get("further_seqs", ())]
    environment = state.get("environments", line.event["env_sha256"])
    rows = benchmark_rows(line, _task(state, line), environment, further=further)
    for row in rows:
        state.add("benchmarks", row)
    if line.type == "BenchmarkFailed":
        state.add("rejections", rejection_row(line, _task(state, line), stage="benchmark"))
    else:
        _count(state, rows, times=1)


def _shape_timed(source: Source, seq: int, *, before: int) -> Document:
    """Return what was measured at a further shape; raise LedgerCorrupt if the event is no such measurement."""
    found = source.event_at(seq) if 0 < seq < before else None
    if not holds(found, ShapeTimed):
        raise LedgerCorrupt(f"event {before} names event {seq}: expected an earlier ShapeTimed")
    return found.event.model_dump(mode="json")


def _count(state: State, rows: list[Row], *, times: int) -> None:
    """Add accepted measurements to their slot's geometric mean; `times=-1` removes them again."""
    for row in rows:
        ratio = row["speedup"]
        proven = row.get("verdict", "accepted") == "accepted"
        if not (proven and row["baseline_used"]) or row["op"] is None or not isinstance(ratio, float):
            continue
        key = (row["op"], row["gpu"], row["dtype"])
        summed = state.get("speedups", *key) or {"measurements": 0, "log_sum": 0.0}
        measurements, log_sum = summed["measurements"], summed["log_sum"]
        assert isinstance(measurements, int)
        assert isinstance(log_sum, float)
        measurements, log_sum = measurements + times, log_sum + times * math.log(ratio)
        found: Row = {"op": key[0], "gpu": key[1], "dtype": key[2], "measurements": measurements, "log_sum": log_sum}
        found["geomean"] = math.exp(log_sum / measurements) if measurements else None
        state.put("speedups", found, *key)


ACCEPTED_ROWS = "SELECT op, gpu, dtype, baseline_used, speedup FROM benchmarks WHERE seq = ? AND verdict = 'accepted'"
"""Query for those rows of one benchmark that the speedups count."""


def _invalidate(state: State, line: Line) -> None:
    """Mark every row of the benchmark when it is withdrawn for the first time."""
    benchmark_seq = line.event["benchmark_seq"]
    if state.get("invalidations", benchmark_seq) is not None:
        return
    withdrawn: Row = {"benchmark_seq": benchmark_seq, "seq": line.seq, "why": line.event["why"]}
    state.put("invalidations", withdrawn, benchmark_seq)
    names = ("op", "gpu", "dtype", "baseline_used", "speedup")
    _count(
        state, [dict(zip(names, row, strict=True)) for row in state.ask(ACCEPTED_ROWS, (benchmark_seq,))], times=-1
    )
    state.mark_invalidated(benchmark_seq, line.seq)
