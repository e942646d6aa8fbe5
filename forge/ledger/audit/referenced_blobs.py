"""Finds the stored bytes that a payload names, independent of the event models."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

LISTED = Path(__file__).parents[2] / "events" / "stored_bytes.toml"
"""File beside the events that lists, for each type, the fields that name stored bytes. It says what each list is."""


class StoredFields(NamedTuple):
    """The fields of one type of event that name stored bytes."""

    stored: Sequence[str] = ()
    own: Sequence[str] = ()
    left_out: Sequence[str] = ()
    pieces: Sequence[str] = ()
    since: Mapping[str, int] = MappingProxyType({})


STORED_FIELDS = {name: StoredFields(**lists) for name, lists in tomllib.loads(LISTED.read_text("utf-8")).items()}
"""Type of event -> its fields that name stored bytes."""
_NONE = StoredFields()
"""Fields of a type of event that names no stored bytes."""
_OWN = "own_"
"""Beginning of the names of own operations, whose events name further blobs."""
_PIECE = "sha256:"
"""Text before a digest where it is a part of a longer value."""
LISTINGS = {"artifact_sha256": "files[].sha256", "plan_sha256": "cubins{}"}
"""Field of an event -> the place in the document it names where that document lists stored bytes itself."""
_PLAN = "plan.json"
"""Name of the file of an artifact that is its launch plan."""
_NO_FIELD = "no such field"
"""Text that stands for a missing field; it is no digest, so the blob counts as missing."""


def required_blobs(type_name: str, version: int, payload: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield field and digest of each blob that must be stored for an event of this type and schema version."""
    listed = STORED_FIELDS.get(type_name, _NONE)
    is_own = bool(listed.own) and any(str(op).startswith(_OWN) for op in values_at(payload, "task.op"))
    for field in (*listed.stored, *(listed.own if is_own else ())):
        if version < listed.since.get(field, 1):
            continue
        for digest in values_at(payload, field):
            if digest is not None:
                yield field, str(digest)
    for field in listed.left_out:
        yield from ((field, str(digest)) for digest in values_at(payload, field) if digest != _NO_FIELD)
    for field in listed.pieces:
        for piece in values_at(payload, field):
            if str(piece).startswith(_PIECE):
                yield field, str(piece).removeprefix(_PIECE)


def is_listing(field: str) -> bool:
    """Return whether the field names a document that lists stored bytes itself."""
    return field.rpartition(".")[2] in LISTINGS


def listed_blobs(field: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Yield field and digest of each blob that the stored document in this field lists."""
    name = field.rpartition(".")[2]
    path = LISTINGS[name]
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    for digest in values_at(document, path):
        yield f"{name}.{path}", str(digest)
    if name == "artifact_sha256" and isinstance(document, dict):
        for file in values_at(document, "files[]"):
            if isinstance(file, dict) and file.get("path") == _PLAN:
                yield "plan_sha256", str(file.get("sha256"))


def values_at(node: object, path: str) -> Iterator[object]:
    """Yield the values at a dotted path: `name[]` is each item of a list, `name{}` each value of an object.

    A missing field yields a text that is no digest.
    """
    step, _, rest = path.partition(".")
    name = step.rstrip("[]{}")
    child = node.get(name, _NO_FIELD) if isinstance(node, dict) else _NO_FIELD
    if step.endswith("[]") and isinstance(child, list):
        children: list[object] = child
    elif step.endswith("{}") and isinstance(child, dict):
        children = list(child.values())
    else:
        children = [child]
    for one in children:
        if rest and isinstance(one, dict):
            yield from values_at(one, rest)
        else:
            yield one
