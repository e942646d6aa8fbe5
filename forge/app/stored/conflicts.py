"""Completes the errors of a command that another process preceded, or that the disk stopped halfway."""

from collections.abc import Iterator
from contextlib import contextmanager

from forge.errors import IdempotencyConflict, StorageFailed
from forge.ledger.store import Ledger


@contextmanager
def naming_the_first(ledger: Ledger, *, run_id: str, key: str) -> Iterator[None]:
    """Name the first event in the error if another process took the same step during the block."""
    try:
        yield
    except IdempotencyConflict as error:
        rows = ledger.rows(correlation_id=run_id)
        first = next((row.seq for row in rows if row.idempotency_key == f"{key}#0"), None)
        if first is None:
            raise
        raise IdempotencyConflict(
            f"another {key.partition(':')[0]} of run {run_id!r} was first (event {first}): this command "
            "would record something else, so it recorded nothing; look at the run's state",
            hint=f"forge run show {run_id}",
        ) from error


def add_recorded_events(refused: StorageFailed, recorded_seq: int) -> None:
    """Add to the error what the command had recorded before the disk refused, unless it says so itself."""
    if refused.hint is None and recorded_seq:
        refused.message += (
            f"; but this command had recorded events before, up to event {recorded_seq}: look at these first"
        )
        refused.hint = "forge run list"
