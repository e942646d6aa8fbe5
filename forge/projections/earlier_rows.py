"""Checks what a row says of the rows before it: that it is no earlier, whose batch it continues, what caused it."""

import re
import sqlite3
from collections.abc import Iterator

from forge.ledger.chain import StoredRow

_KEY = re.compile(r"(.+)#(0|[1-9][0-9]{0,8})", re.DOTALL)
"""Pattern of a stored key: the command's key, and the event's place in the command's batch."""
_OF_A_BATCH = ("recorded_at", "actor", "correlation_id", "causation_id")
"""Columns that are the same in all rows of a batch."""
_PLACE_OF_ID = "SELECT seq FROM event WHERE event_id = ?"


def contradictions(
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
