"""Names where a replayed event differs from the recorded one: the field, and both values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from forge.domain.digest import Digest, canonical
from forge.events import Event, Recorded

LONGEST_VALUE = 200
"""Largest number of characters of a value in a message. Chosen; a value may hold a whole source file."""
Content = Callable[[Digest], bytes | None]
"""Returns the bytes behind a digest; None if they aren't known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first field in which one replayed event differs from the recorded one."""

    seq: int
    """Sequence number of the recorded event."""
    type: str
    field: str
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return f"event {self.seq} ({self.type}), {self.field}: recorded {self.recorded}, replayed {self.replayed}"


def divergence(recorded: Recorded[Event], replayed: Event, *, stored: Content, made: Content) -> Divergence | None:
    """Return how a replayed event differs from the recorded one; None if their payloads are equal.

    Where a digest differs and both contents are JSON, the field inside them is named.
    """
    if type(recorded.event) is not type(replayed):
        return _named(recorded, "type", recorded.event.TYPE, replayed.TYPE)
    before, now = (orjson.loads(canonical(one)) for one in (recorded.event, replayed))
    found = _first(before, now, "")
    if found is None:
        return None
    field, old, new = found
    if field.endswith("sha256"):
        inner = _in_documents(stored(str(old)), made(str(new)), field)
        if inner is not None:
            field, old, new = inner
    return _named(recorded, field, old, new)


def _named(recorded: Recorded[Event], field: str, old: object, new: object) -> Divergence:
    shown = [text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..." for text in map(repr, (old, new))]
    return Divergence(seq=recorded.seq, type=recorded.event.TYPE, field=field, recorded=shown[0], replayed=shown[1])


def _in_documents(old: bytes | None, new: bytes | None, field: str) -> tuple[str, object, object] | None:
    if old is None or new is None:
        return None
    try:
        return _first(orjson.loads(old), orjson.loads(new), field.removesuffix("_sha256"))
    except orjson.JSONDecodeError:
        return None


def _first(old: Any, new: Any, path: str) -> tuple[str, object, object] | None:  # Any: JSON documents
    """Return the path of the first difference with both values; None if there is none."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = sorted({*old, *new})
        pairs = [(f"{path}.{name}".lstrip("."), old.get(name), new.get(name)) for name in names]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(f"{path}[{place}]", *both) for place, both in enumerate(zip(old, new, strict=True))]
    else:
        return None if old == new and type(old) is type(new) else (path, old, new)
    return next((found for name, one, other in pairs if (found := _first(one, other, name))), None)
