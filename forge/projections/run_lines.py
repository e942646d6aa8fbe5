"""Folds the table `runs`: how far each run came. The module `runs` folds the full state that a phase builds on."""

import math
from collections.abc import Callable

from forge.domain.verdict import UNDECIDED
from forge.errors import LedgerCorrupt
from forge.ledger.replay import Line
from forge.projections.fold import Source
from forge.projections.rows import slot, text
from forge.projections.runs import PHASE_OF, STAGE_AFTER
from forge.projections.state import Row, State

STAGES = {kind.TYPE: stage for kind, stage in STAGE_AFTER.items()}
"""Event type -> the stage of a run after it."""
PHASES = {kind.TYPE: phase for kind, phase in PHASE_OF.items()}
"""Event type -> the phase that it is an attempt of."""
PLACES = {
    "PlanAccepted": "plan_seq",
    "PromptRendered": "prompt_seq",
    "RunSealed": "ended_seq",
    "RunAborted": "ended_seq",
}
"""Event type -> the column that holds its place."""
TYPES = frozenset(
    {*STAGES, *PHASES, *PLACES, "BaselineRecorded", "ClaimRecorded", "ClaimAssessed", "ProfileCaptured"}
)


def take(state: State, line: Line, _: Source) -> None:
    """Update the event's run; events of a run that never started leave no row."""
    kind, run_id = line.type, line.event["run_id"]
    if kind == "RunStarted":
        state.put("runs", _started(line, state.get("tasks", line.event["task_id"])), run_id)
        return
    run = state.get("runs", run_id)
    if run is None:
        return
    at_the_door = kind == "CandidateRejected" and line.event["stage"] == "submit"
    if not run["sealed"] and run["state"] != "aborted" and not at_the_door:
        run["state"] = _stage(line) or run["state"]
    phase = "submit" if at_the_door else PHASES.get(kind)
    if phase is not None:
        attempts = run[f"{phase}_attempts"]
        assert isinstance(attempts, int)
        run[f"{phase}_attempts"] = attempts + 1
    if kind in PLACES:
        run[PLACES[kind]] = line.seq
    if kind in ROW_UPDATES:
        ROW_UPDATES[kind](line, run)
    run["last_seq"] = line.seq
    state.put("runs", run, run_id)


def _plan(line: Line, run: Row) -> None:
    run["skills"] = text([{"id": one["id"], "sha256": one["sha256"]} for one in line.event["skills"]])


def _prompt(line: Line, run: Row) -> None:
    for name in ("template", "template_version", "template_sha256"):
        run[name] = line.event[name]


def _submission(_: Line, run: Row) -> None:
    run["verified_seq"] = run["simulated"] = None


def _verification(line: Line, run: Row) -> None:
    run["verified_seq"], run["simulated"] = line.seq, line.event["simulated"]


def _refusal(line: Line, run: Row) -> None:
    run["simulated"] = line.event["simulated"]


def _timing(line: Line, run: Row) -> None:
    """Add the GPU seconds of one benchmark; the cell stays None while none were recorded."""
    spent = [one["replay"]["gpu_s"] for one in line.event["workloads"] if one.get("replay")]
    stopped = line.event.get("stopped")
    if stopped and stopped["gpu_s"] is not None:
        spent.append(stopped["gpu_s"])
    if spent:
        before = run["gpu_s"]
        assert before is None or isinstance(before, float)
        run["gpu_s"] = math.fsum([*spent, before or 0.0])


def _seal(line: Line, run: Row) -> None:
    """Note the seal; raise LedgerCorrupt if it states another outcome than the run's events give."""
    if line.event["outcome"] != run["state"]:
        raise LedgerCorrupt(
            f"event {line.seq} seals run {run['run_id']!r} as {line.event['outcome']!r}: "
            f"expected {run['state']!r}, as its events say"
        )
    run["sealed"], run["outcome"] = True, line.event["outcome"]


def _abortion(line: Line, run: Row) -> None:
    run["outcome"] = line.event["reason"]


ROW_UPDATES: dict[str, Callable[[Line, Row], None]] = {
    "PlanAccepted": _plan,
    "PromptRendered": _prompt,
    "CandidateSubmitted": _submission,
    "CandidateVerified": _verification,
    "CandidateRejected": _refusal,
    "BenchmarkRecorded": _timing,
    "BenchmarkFailed": _timing,
    "RunSealed": _seal,
    "RunAborted": _abortion,
}
"""Event type -> the function that copies other values into a run's row: its plan, prompt, timing and end."""


def _stage(line: Line) -> str | None:
    """Return a run's stage after the event; None if the event doesn't change it."""
    if line.type == "BenchmarkFailed" and line.event["reason"]["code"] in UNDECIDED:
        return "verified"
    return STAGES.get(line.type)


def _started(line: Line, task: Row | None) -> Row:
    return {
        "run_id": line.event["run_id"],
        "task_id": line.event["task_id"],
        **slot(task),
        "language": task["language"] if task else None,
        "command": line.event["command"],
        "actor": line.actor,
        "state": "planned",
        "sealed": False,
        "outcome": None,
        "submit_attempts": 0,
        "verify_attempts": 0,
        "benchmark_attempts": 0,
        "promote_attempts": 0,
        "skills": "[]",
        **dict.fromkeys(("template", "template_version", "template_sha256", "verified_seq", "simulated", "gpu_s")),
        "started_seq": line.seq,
        "plan_seq": None,
        "prompt_seq": None,
        "ended_seq": None,
        "last_seq": line.seq,
        "recorded_at": line.recorded_at,
    }
