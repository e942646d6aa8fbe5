"""From events to published files, at once or piece by piece: both give the same bytes.

Take the head first, then read: what another process appends in between is left for next time.
"""

from collections.abc import Iterable

from forge.errors import LedgerCorrupt
from forge.events import Event, Recorded
from forge.projections import PROJECTIONS, history, registry
from forge.projections.fold import Head, Position
from forge.projections.folds import EMPTY, Folds


def catch_up(folds: Folds, recorded: Iterable[Recorded[Event]], *, head: Head | None = None) -> Folds:
    """The states after the events that follow `folds`, up to `head` if given; `folds` stays as it was.

    Raises LedgerCorrupt if an event is missing, comes twice, or contradicts an earlier one.
    """
    registry_state, history_state = folds.registry.copied(), folds.history.copied()
    seq, event_hash = folds.seq, folds.event_hash
    for event in recorded:
        if head is not None and event.seq > head.seq:
            break
        if event.seq != seq + 1:
            raise LedgerCorrupt(f"event {event.seq} follows event {seq}: expected {seq + 1}; rebuild from zero")
        registry.take(registry_state, event)
        history.take(history_state, event)
        seq, event_hash = event.seq, event.event_hash
    return Folds(registry_state, history_state, seq=seq, event_hash=event_hash)


def render(folds: Folds, head: Head, ledger_id: str) -> dict[str, bytes]:
    """Every published file, relative to kernel_registry/.

    Raises LedgerCorrupt unless the events folded are all of those up to `head`.
    """
    if folds.seq != head.seq or (folds.event_hash is not None and folds.event_hash != head.event_hash):
        raise LedgerCorrupt(
            f"the events folded end at {folds.seq} ({folds.event_hash}), "
            f"the ledger's head is {head.seq} ({head.event_hash}): read again, or rebuild from zero"
        )
    position = Position(ledger_id, head.seq, head.event_hash)
    files: dict[str, bytes] = {}
    for projection in PROJECTIONS.values():
        files |= projection(folds, position)
    return files


def rebuild(recorded: Iterable[Recorded[Event]], head: Head, ledger_id: str) -> dict[str, bytes]:
    """Every published file, from the first event up to `head`."""
    return render(catch_up(EMPTY, recorded, head=head), head, ledger_id)
