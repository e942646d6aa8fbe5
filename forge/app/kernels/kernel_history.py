"""Tells what led to a kernel and what happened since, from tables and events as documents."""

import sqlite3
from collections.abc import Iterable

from forge.app.known_kernel import require_kernel
from forge.app.plain_events import HasEvents
from forge.ledger.plain_rows import Document, PlainEvent

Data = dict[str, object]
STATUS = """
    SELECT status, status_reason, status_seq, superseded_by, candidate, task_id FROM kernels WHERE kernel_id = ?
"""
"""Query for a kernel's status and what it was promoted from."""
RUN_PLACES = "SELECT started_seq, plan_seq, prompt_seq, ended_seq FROM runs WHERE run_id = ?"
"""Query for the numbers of the events of a run's phases."""
TOLD = {
    "BenchmarkInvalidated": "benchmark {benchmark_seq}: {why}",
    "ClaimAssessed": "{verdict}",
    "ClaimRecorded": "{claimant} said {metric} {value:.4g} {unit}",
    "KernelDeprecated": "{kernel_id}: {reason}",
    "KernelPromoted": "{kernel_id}: {speedup[ratio]:.3g}x over {baseline}",
    "KernelRevoked": "{kernel_id}: {severity}: {reason}",
    "RunAborted": "{reason}",
    "RunSealed": "{outcome}",
    "TaskCreated": "{task_id}",
    **dict.fromkeys(("BenchmarkFailed", "CandidateRejected", "PromotionDenied"), "{reason[code]}: {reason[message]}"),
}
"""Type of an event -> what the event says in one line, from its fields."""


def kernel_history(home: HasEvents, kernel_id: str) -> Data:
    """Return everything that led to a kernel and happened since, in order, with each event's place and hash."""
    with home.publication.tables() as connection:
        require_kernel(connection, kernel_id)
        places, status = _places(connection, kernel_id)
    events = [home.event(seq) for seq in sorted(places)]
    baselines = {seq for one in events if one.type == "BenchmarkRecorded" for seq in one.event["baseline_seqs"]}
    events += [home.event(seq) for seq in baselines - places]
    told = [_described(one) for one in sorted(events, key=lambda one: one.seq)]
    return {"kernel_id": kernel_id, **status, "events": told}


def _places(connection: sqlite3.Connection, kernel_id: str) -> tuple[set[int], Data]:
    """Return the places of the events about a kernel, its candidate, task and runs; and what became of it."""
    cursor = connection.execute(STATUS, (kernel_id,))
    status: Data = dict(zip((column[0] for column in cursor.description), cursor.fetchone(), strict=True))
    candidate, task_id = status["candidate"], status["task_id"]
    trail = _numbers(connection.execute("SELECT seq FROM trail WHERE candidate = ?", (candidate,)))
    task = _numbers(connection.execute("SELECT seq FROM tasks WHERE task_id = ?", (task_id,)))
    submitted = "SELECT DISTINCT run_id FROM candidates WHERE candidate = ?"
    runs = [run_id for (run_id,) in connection.execute(submitted, (candidate,))]
    return trail.union(task, *(_numbers(connection.execute(RUN_PLACES, (run_id,))) for run_id in runs)), status


def _numbers(rows: Iterable[tuple[int | None, ...]]) -> set[int]:
    return {number for row in rows for number in row if number is not None}


def _described(one: PlainEvent) -> Data:
    return {
        "seq": one.seq,
        "type": one.type,
        "what": told(one.type, one.event),
        "recorded_at": one.recorded_at,
        "actor": one.actor,
        "run": one.event.get("run_id"),
        "event_id": one.event_id,
        "causation_id": one.causation_id,
        "event_hash": one.event_hash,
    }


def told(type_name: str, event: Document) -> str | None:
    """Return what an event says in one line; None if its type says it."""
    simulated = "; SIMULATED" if event.get("simulated") else ""
    if type_name == "CandidateVerified":
        return _verification(event) + simulated
    if type_name == "BenchmarkRecorded":
        ratios = [one["interval"]["ratio"] for timing in event["workloads"] for one in timing["speedups"]]
        return f"{min(ratios):.3g}x to {max(ratios):.3g}x" if ratios else None
    return TOLD[type_name].format_map(event) + simulated if type_name in TOLD else None


def _verification(event: Document) -> str:
    """Return how many gates passed, how many weren't asked, and at how many shapes."""
    passed = sum(gate["verdict"] == "passed" for gate in event["gates"])
    unasked = len(event["gates"]) - passed
    said = f"{passed} gates passed{f', {unasked} not asked' if unasked else ''}"
    return f"{said} at {len(event['shapes_verified'])} shapes"
