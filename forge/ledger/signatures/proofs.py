"""Writes the proof of one event in the form of c2sp.org/tlog-proof, with what the event was made of."""

import base64
from dataclasses import dataclass

import orjson

from forge.ledger.chain import StoredRow, envelope
from forge.ledger.tree import StoredTree


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint to prove against."""

    size: int
    note: str


def prove(tree: StoredTree, row: StoredRow, checkpoint: Signed, *, listing: str | None) -> str:
    """Return the proof that `row` is among the events of `checkpoint`; `listing` names what was built."""
    path = tree.inclusion(row.seq - 1, checkpoint.size)
    extra = orjson.dumps({"envelope": envelope(row).decode(), "payload": row.payload, "listing": listing})
    lines = ["c2sp.org/tlog-proof@v1", f"extra {_text(extra)}", f"index {row.seq - 1}", *map(_text, path)]
    return "\n".join(lines) + "\n\n" + checkpoint.note


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
