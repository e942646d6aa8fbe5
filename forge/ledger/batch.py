"""Validates and serialises the events that are appended together, before any lock is taken."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson
from pydantic_core import PydanticSerializationError

from forge.domain.digest import canonical
from forge.errors import IntegrityError, LedgerCorrupt
from forge.events import EVENT_TYPES, Event, parse_event
from forge.events.kinds import KINDS
from forge.events.ledger import LedgerOpened
from forge.ledger.actors import require_allowed
from forge.ledger.statements import PAYLOAD_LIMIT_BYTES

TEXT_LIMIT = 200
"""Longest text of an actor, an id or a key, in characters. Chosen; they are stored and indexed in every event."""
STREAM_LIMIT = 300
"""Longest name of a stream, in characters: a category, and an id of up to `TEXT_LIMIT` characters."""


class Batch(NamedTuple):
    """The events of one command: all are recorded, or none."""

    events: Sequence[Event]
    actor: str
    correlation_id: str
    causation_id: str | None = None
    idempotency_key: str | None = None
    expected: Mapping[str, int] | None = None
    """Stream -> the version that it must have; 0 means that it must not exist."""


class PreparedEvent(NamedTuple):
    """An event as it will be stored, without its place in the ledger."""

    stream: str
    type: str
    schema_version: int
    payload: str
    payload_sha256: bytes


class PreparedBatch(NamedTuple):
    """A batch that can be written without further checks."""

    events: Sequence[PreparedEvent]
    actor: str
    correlation_id: str
    causation_id: str | None
    idempotency_key: str | None
    expected: Mapping[str, int]


def prepare(batch: Batch, *, opening: bool = False) -> PreparedBatch:
    """Check and serialise a batch; raise IntegrityError or ActorForbidden. `opening` allows LedgerOpened."""
    if not batch.events:
        raise IntegrityError("nothing to append: expected at least one event")
    _require_text("actor", batch.actor)
    _require_text("correlation_id", batch.correlation_id)
    if batch.causation_id is not None:
        _require_text("causation_id", batch.causation_id)
    if batch.idempotency_key is not None:
        _require_text("idempotency_key", batch.idempotency_key)
    for event in batch.events:
        if EVENT_TYPES.get(event.TYPE) is not type(event):
            raise IntegrityError(f"{type(event).__name__} isn't a registered event: add it to forge.events.every")
        require_allowed(batch.actor, event)
        if event.TYPE == LedgerOpened.TYPE and not opening:
            raise IntegrityError("LedgerOpened stands only at the start of a ledger: expected another event")
    return PreparedBatch(
        events=[_prepare_event(event) for event in batch.events],
        actor=batch.actor,
        correlation_id=batch.correlation_id,
        causation_id=batch.causation_id,
        idempotency_key=batch.idempotency_key,
        expected=dict(batch.expected) if batch.expected else {},
    )


def _prepare_event(event: Event) -> PreparedEvent:
    payload = _serialise(event)
    stream = event.stream()
    category, _, rest = stream.partition(":")
    if not (category.isascii() and category.isalpha() and category.islower() and rest):
        raise IntegrityError(f"{event.TYPE} names the stream {stream!r}: expected <category>:<id>")
    _require_text(f"stream of {event.TYPE}", stream, limit=STREAM_LIMIT)
    version = KINDS[event.TYPE].version
    return PreparedEvent(stream, event.TYPE, version, payload.decode(), hashlib.sha256(payload).digest())


def _serialise(event: Event) -> bytes:
    """Return canonical bytes that were read back as the same event; a NaN that passed validation isn't read back."""
    try:
        payload = canonical(event)
    except (orjson.JSONEncodeError, PydanticSerializationError) as error:
        raise IntegrityError(
            f"{event.TYPE} can't be written as JSON ({error}): expected text, finite numbers, lists and dictionaries"
        ) from error
    if len(payload) > PAYLOAD_LIMIT_BYTES:
        raise IntegrityError(
            f"{event.TYPE} has a payload of {len(payload)} bytes, expected at most {PAYLOAD_LIMIT_BYTES}: "
            "put large data into the content-addressed store first and name it by its digest"
        )
    try:
        again = parse_event(event.TYPE, KINDS[event.TYPE].version, payload)
    except LedgerCorrupt as error:
        raise IntegrityError(f"{event.TYPE} can't be read back, so it isn't recorded: {error.message}") from error
    if again != event:
        raise IntegrityError(f"{event.TYPE} would read back as {again!r}: expected what was given, {event!r}")
    if not payload.isascii():
        _require_ascii_keys(event.TYPE, orjson.loads(payload))
    return payload


def _require_ascii_keys(type_name: str, node: object) -> None:
    """Refuse keys that aren't ASCII: other JSON libraries sort by UTF-16 unit, which only agrees for ASCII."""
    if isinstance(node, dict):
        for key, value in node.items():
            if not key.isascii():
                raise IntegrityError(f"{type_name} has the key {key!r}: expected ASCII")
            _require_ascii_keys(type_name, value)
    elif isinstance(node, list):
        for value in node:
            _require_ascii_keys(type_name, value)


def _require_text(name: str, text: str, *, limit: int = TEXT_LIMIT) -> None:
    if not (1 <= len(text) <= limit and text.isprintable()):
        raise IntegrityError(f"{name} is {text!r}: expected 1 to {limit} printable characters")
