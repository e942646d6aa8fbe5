"""What is said where a command came second, or was stopped halfway by the disk."""

from collections.abc import Iterator
from contextlib import contextmanager

from forge.errors import IdempotencyConflict, StorageFailed
from forge.ledger.store import Ledger


@contextmanager
def in_turn(ledger: Ledger, *, run_id: str, key: str) -> Iterator[None]:
    """For the append of a phase: say who was first if another process took the same step meanwhile."""
    try:
        yield
    except IdempotencyConflict as error:
        rows = ledger.rows(correlation_id=run_id)
        first = next((row.seq for row in rows if row.idempotency_key == f"{key}#0"), None)
        if first is None:
            raise
        raise IdempotencyConflict(
            f"another {key.partition(':')[0]} of run {run_id!r} was first (event {first}): this one would record "
            "something else, and nothing of it was recorded; look where the run stands",
            hint=f"forge run show {run_id}",
        ) from error


def say_what_stands(refused: StorageFailed, recorded_seq: int) -> None:
    """Add what the command had recorded before the disk refused, unless the error says so itself."""
    if refused.hint is None and recorded_seq:
        refused.message += (
            f"; but what this command recorded before stands, up to event {recorded_seq}: look at that first"
        )
        refused.hint = "forge run list"
