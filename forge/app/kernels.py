"""Answers questions about kernels from the projections, as plain data for a table or for JSON."""

import sqlite3
from collections.abc import Iterable

import orjson

from forge.app.known_kernel import require_kernel
from forge.app.workspace import Workspace
from forge.events import (
    BenchmarkFailed,
    BenchmarkInvalidated,
    BenchmarkRecorded,
    CandidateRejected,
    CandidateVerified,
    ClaimAssessed,
    ClaimRecorded,
    Event,
    KernelDeprecated,
    KernelPromoted,
    KernelRevoked,
    PromotionDenied,
    Recorded,
    RunAborted,
    RunSealed,
    TaskCreated,
)
from forge.projections import documents

Data = dict[str, object]
STATUS = """
    SELECT status, status_reason, status_seq, superseded_by, candidate, task_id FROM kernels WHERE kernel_id = ?
"""
RUN_PLACES = "SELECT started_seq, plan_seq, prompt_seq, ended_seq FROM runs WHERE run_id = ?"


def kernels(workspace: Workspace) -> list[Data]:
    """Return the registry's entries, as published."""
    with workspace.publication.tables() as connection:
        return [orjson.loads(text) for (text,) in connection.execute(documents.ENTRIES)]


def find_kernel(workspace: Workspace, kernel_id: str) -> Data:
    """Return one registry entry; raise UnknownName."""
    with workspace.publication.tables() as connection:
        require_kernel(connection, kernel_id)
        entry: Data = orjson.loads(connection.execute(documents.ENTRY, (kernel_id,)).fetchone()[0])
    return entry


def kernel_history(workspace: Workspace, kernel_id: str) -> Data:
    """Return everything that led to a kernel and happened since, in order, with each event's place and hash."""
    with workspace.publication.tables() as connection:
        require_kernel(connection, kernel_id)
        places, status = _places(connection, kernel_id)
    events = [_event_at(workspace, seq) for seq in sorted(places)]
    baselines = {
        seq
        for recorded in events
        if isinstance(recorded.event, BenchmarkRecorded)
        for seq in recorded.event.baseline_seqs
    }
    events += [_event_at(workspace, seq) for seq in baselines - places]
    return {
        "kernel_id": kernel_id,
        **status,
        "events": [_told(recorded) for recorded in sorted(events, key=lambda one: one.seq)],
    }


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


def _event_at(workspace: Workspace, seq: int) -> Recorded[Event]:
    return next(workspace.ledger.read(after_seq=seq - 1, limit=1))


def _told(recorded: Recorded[Event]) -> Data:
    event = recorded.event
    return {
        "seq": recorded.seq,
        "type": event.TYPE,
        "what": told(event),
        "recorded_at": recorded.recorded_at,
        "actor": recorded.actor,
        "run": getattr(event, "run_id", None),
        "event_id": recorded.event_id,
        "causation_id": recorded.causation_id,
        "event_hash": recorded.event_hash,
    }


def told(event: Event) -> str | None:
    """Return what an event says in one line; None if its type says it."""
    match event:
        case TaskCreated():
            return event.task_id
        case CandidateVerified():
            return verification_told(event)
        case CandidateRejected() | BenchmarkFailed() | PromotionDenied():
            simulated = isinstance(event, CandidateRejected) and event.simulated
            return f"{event.reason.code}: {event.reason.message}{'; SIMULATED' if simulated else ''}"
        case BenchmarkRecorded():
            ratios = [one.interval.ratio for timing in event.workloads for one in timing.speedups]
            return f"{min(ratios):.3g}x to {max(ratios):.3g}x" if ratios else None
        case RunSealed():
            return event.outcome
        case RunAborted():
            return event.reason
        case _:
            return _claimed(event) or _decided(event)


def verification_told(event: CandidateVerified) -> str:
    """Return what a verification says in one line: gates passed, gates not asked, and whether it was simulated."""
    passed = sum(gate.verdict == "passed" for gate in event.gates)
    unasked = len(event.gates) - passed
    told = f"{passed} gates passed{f', {unasked} not asked' if unasked else ''}"
    return f"{told} at {len(event.shapes_verified)} shapes{'; SIMULATED' if event.simulated else ''}"


def _claimed(event: Event) -> str | None:
    match event:
        case ClaimRecorded():
            return f"{event.claimant} said {event.metric} {event.value:.4g} {event.unit}"
        case ClaimAssessed():
            return event.verdict
        case _:
            return None


def _decided(event: Event) -> str | None:
    match event:
        case BenchmarkInvalidated():
            return f"benchmark {event.benchmark_seq}: {event.why}"
        case KernelPromoted():
            return f"{event.kernel_id}: {event.speedup.ratio:.3g}x over {event.baseline}"
        case KernelDeprecated():
            return f"{event.kernel_id}: {event.reason}"
        case KernelRevoked():
            return f"{event.kernel_id}: {event.severity}: {event.reason}"
        case _:
            return None
