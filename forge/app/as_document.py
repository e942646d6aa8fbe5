"""Tells an event that was read as a model as a document."""

from typing import TYPE_CHECKING

from forge.ledger.plain_rows import PlainEvent

if TYPE_CHECKING:
    from forge.events import Fact, Recorded


def plain(one: "Recorded[Fact]") -> PlainEvent:
    """Return an event that was read as a model as a document."""
    document = one.event.model_dump(mode="json")
    named = (one.event_id, one.causation_id, one.event_hash)
    return PlainEvent(one.seq, one.event.TYPE, one.recorded_at, one.actor, *named, document)
