"""Tells an event that was read as a model as a document."""

from typing import TYPE_CHECKING

import orjson

from forge.ledger.plain_rows import PlainEvent

if TYPE_CHECKING:
    from forge.events import Fact, Recorded


def plain(one: "Recorded[Fact]") -> PlainEvent:
    """Return an event that was read as a model as a document, with names in the order in which they are stored."""
    from forge.domain.digest import canonical  # here: a document that was read from a row needs no models

    document = orjson.loads(canonical(one.event))
    named = (one.event_id, one.causation_id, one.event_hash)
    return PlainEvent(one.seq, one.event.TYPE, one.recorded_at, one.actor, *named, document)
