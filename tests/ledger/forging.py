"""Rewrites a copied ledger as one does who has all but the key: every hash and signature fits again."""

import base64
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from forge.ledger.audit.envelope import COLUMNS

Edit = Callable[[int, str, str], str]
"""Place, type and payload -> the payload that stands there from now on."""


def forge(path: Path, edit: Edit) -> None:
    """Edit payloads, and derive the chain, the tree and all signatures anew, with keys of the attacker's own."""
    with _unguarded(path) as connection:
        _rewrite(connection, edit)


def cut(path: Path, *, last: int) -> None:
    """Leave the ledger as it was after one of its events."""
    with _unguarded(path) as connection:
        connection.execute("DELETE FROM event WHERE seq > ?", (last,))
        connection.execute("DELETE FROM tree_node WHERE (place + 1) << level > ?", (last,))


@contextmanager
def _unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, guard in guards:
            connection.execute(guard)
        connection.commit()


def _rewrite(connection: sqlite3.Connection, edit: Edit) -> None:
    ledger_id, origin = connection.execute("SELECT ledger_id, origin FROM ledger_meta").fetchone()
    name, head = f"{origin}/{ledger_id}", hashlib.sha256(b"forge.ledger.v1\n" + ledger_id.encode()).digest()
    leaves: list[bytes] = []
    key = Ed25519PrivateKey.generate()
    for values in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM event ORDER BY seq").fetchall():
        row = dict(zip(COLUMNS, values, strict=True))
        payload = edit(row["seq"], row["type"], row.pop("payload"))
        if row["type"] in ("LedgerOpened", "LedgerKeyAdopted"):
            key = Ed25519PrivateKey.generate()
            public = base64.b64encode(key.public_key().public_bytes_raw()).decode()
            payload = _canonical(json.loads(payload) | {"public_key": public})
        elif row["type"] == "CheckpointPublished":
            payload = _signed(json.loads(payload), key, name, leaves)
        digest = hashlib.sha256(payload.encode()).digest()
        envelope = row | {"payload_sha256": digest.hex(), "prev_hash": head.hex()}
        del envelope["event_hash"]
        before, head = head, hashlib.sha256(b"\x00" + _canonical(envelope).encode()).digest()
        leaves.append(head)
        new = (payload, digest, before, head, row["seq"])
        connection.execute(
            "UPDATE event SET payload = ?, payload_sha256 = ?, prev_hash = ?, event_hash = ? WHERE seq = ?", new
        )
    for level, place in connection.execute("SELECT level, place FROM tree_node").fetchall():
        node = root(leaves[place << level : (place + 1) << level])
        connection.execute("UPDATE tree_node SET hash = ? WHERE level = ? AND place = ?", (node, level, place))


def _signed(payload: dict[str, object], key: Ed25519PrivateKey, name: str, leaves: list[bytes]) -> str:
    size = int(str(payload["size"]))
    over = root(leaves[:size])
    text = f"{name}\n{size}\n{base64.b64encode(over).decode()}\n"
    public = key.public_key().public_bytes_raw()
    key_id = hashlib.sha256(name.encode() + b"\n\x01" + public).digest()[:4]
    line = base64.b64encode(key_id + key.sign(text.encode())).decode()
    return _canonical(payload | {"root_hash": over.hex(), "note": f"{text}\n\u2014 {name} {line}\n"})


def root(leaves: list[bytes]) -> bytes:
    """Of the tree over some leaves, as RFC 6962 has it."""
    if len(leaves) == 1:
        return leaves[0]
    left = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + root(leaves[:left]) + root(leaves[left:])).digest()


def _canonical(document: dict[str, object]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
