"""Finds what an event contradicts of those before it: of the rows, of its run, and of its session.

A ledger is read so while it is verified. A row is no earlier than the one before it, continues a batch as that was
recorded, and names a cause before it. A forged session is found before one is resumed.
"""

import re
import sqlite3
from collections.abc import Iterator

from forge.errors import LedgerCorrupt
from forge.events import Event, KernelPromoted, Recorded
from forge.events.benchmark import BaselineRecorded, BenchmarkFailed, BenchmarkRecorded, ShapeTimed
from forge.events.session import StepAnswered
from forge.ledger.chain import StoredRow
from forge.projections import sessions
from forge.projections.runs import RunsState, phase_of, run_of
from forge.projections.sessions import STREAM, SessionState
from forge.projections.state import State

_KEY = re.compile(r"(.+)#(0|[1-9][0-9]{0,8})", re.DOTALL)
"""Pattern of a stored key: the command's key, and the event's place in the command's batch."""
_OF_A_BATCH = ("recorded_at", "actor", "correlation_id", "causation_id")
"""Columns that are the same in all rows of a batch."""
_PLACE_OF_ID = "SELECT seq FROM event WHERE event_id = ?"
_TIMED = (BenchmarkRecorded, BenchmarkFailed, ShapeTimed)
"""Events that name the verification which they stand on."""
_OF_A_BENCHMARK = (BaselineRecorded, ShapeTimed)
"""Events that a benchmark records before its own."""


def row_contradictions(
    row: StoredRow, before: StoredRow | None, connection: sqlite3.Connection
) -> Iterator[tuple[str, str]]:
    """Yield the column and what is wrong, for each value of a row that contradicts the rows before it."""
    if before is not None and row.recorded_at < before.recorded_at:
        yield "recorded_at", f"{row.recorded_at}, before that of event {before.seq}: {before.recorded_at}"
    if row.idempotency_key is not None:
        yield from (("idempotency_key", why) for why in _of_no_batch(row, row.idempotency_key, before))
    if row.causation_id is not None:
        found = connection.execute(_PLACE_OF_ID, (row.causation_id,)).fetchone()
        if found is None or found[0] >= row.seq:
            yield "causation_id", f"{row.causation_id!r}, which is no event before it"


def _of_no_batch(row: StoredRow, stored: str, before: StoredRow | None) -> Iterator[str]:
    key = _KEY.fullmatch(stored)
    if key is None:
        yield f"{stored!r}, expected a command's key, # and the place in its batch"
    elif key[2] != "0":
        wanted = f"{key[1]}#{int(key[2]) - 1}"
        if before is None or before.idempotency_key != wanted:
            yield f"{stored!r} without {wanted!r} right before it: a batch is recorded whole"
        elif any(getattr(before, name) != getattr(row, name) for name in _OF_A_BATCH):
            yield f"{stored!r} in a batch with another time, actor, run or cause"


def run_contradictions(recorded: Recorded[Event], runs: RunsState, state: State) -> Iterator[str]:
    """Yield what an event says against its run; both states are those before it."""
    run = runs.runs.get(run_of(recorded.event) or "")
    if run is None:
        return  # the fold of the runs refuses a run that never started
    event, phase = recorded.event, phase_of(recorded.event)
    task_id = getattr(event, "task_id", run.task_id)
    if task_id != run.task_id:
        yield f"task {task_id!r}, but run {run.run_id!r} is for {run.task_id!r}"
    if phase is not None and run.sealed:
        yield f"a result of run {run.run_id!r}, which had been sealed"
    if isinstance(event, _TIMED) and event.verified_seq != (run.verified.seq if run.verified else None):
        yield f"verification {event.verified_seq}, which isn't the last of run {run.run_id!r}"
    machine = getattr(event, "env_sha256", None) if phase or isinstance(event, _OF_A_BENCHMARK) else None
    if machine is not None and state.get("environments", machine) is None:
        yield f"machine {machine!r}, which isn't in the ledger before it"


class SessionsRead:
    """The states of all sessions after some events of the ledger."""

    def __init__(self) -> None:
        self._states: dict[str, SessionState] = {}

    def take(self, recorded: Recorded[Event], runs: RunsState) -> None:
        """Take one event, after `runs` did; raise LedgerCorrupt if its session or its run contradicts it."""
        if not recorded.stream.startswith(STREAM):
            return
        before = self._states.get(recorded.stream)
        after = sessions.begin(recorded) if before is None else sessions.apply(before, recorded)
        self._states[recorded.stream] = after
        if isinstance(recorded.event, StepAnswered) and recorded.event.kernel_id is not None:
            _require_promoted(recorded.event, after, runs)


def _require_promoted(event: StepAnswered, state: SessionState, runs: RunsState) -> None:
    """Raise LedgerCorrupt unless the run of an answered request promoted the kernel that the answer names."""
    requests = (one for each in state.rounds for one in each.requests)
    for_run = next(one.reserved.for_run for one in requests if one.number == event.request)
    run = runs.runs.get(for_run) if for_run is not None else None
    promoted = run.promotion.event if run is not None and run.promotion is not None else None
    found = promoted.kernel_id if isinstance(promoted, KernelPromoted) else None
    if found != event.kernel_id:
        raise LedgerCorrupt(
            f"request {event.request} of session {event.session_id!r} names kernel {event.kernel_id!r}: "
            f"expected {found!r}, which its run {for_run!r} promoted"
        )
