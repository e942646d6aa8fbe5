"""A copy of the base workspace, and what the owner of its files can do to it."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from forge.domain.digest import canonical
from forge.ledger.chain import StoredRow, genesis_hash, sealed
from forge.ledger.merkle import complete_root
from forge.ledger.statements import INSERT_EVENT, INSERT_NODE

KEPT = "kept"
"""Folder of what was copied off the machine: the `old` and the `new` checkpoint and verifier key."""
Found = Literal["verify", "--full", "kept", "nothing"]
Rows = list[StoredRow]
NEW_ID = "01a20000-0000-7000-8000-{:012x}"


class Edit(NamedTuple):
    """One edit, in words, and what finds it."""

    name: str
    act: "Callable[[Copy], None]"
    found: Found = "verify"
    why: str = ""
    """Why nothing finds it, or only what was kept elsewhere."""


@dataclass(frozen=True)
class Copy:
    """A workspace of one test's own."""

    home: Path

    @property
    def path(self) -> Path:
        return self.home / "kernel_registry.db"

    @property
    def runs(self) -> Path:
        return self.home / "forge_runs"

    @property
    def registry(self) -> Path:
        return self.home / "kernel_registry"

    @property
    def run_folder(self) -> Path:
        """The folder of the sealed run."""
        (manifest,) = self.runs.glob("2*/manifest.json")
        return manifest.parent

    def kept(self, name: str) -> Path:
        """What was copied off the machine."""
        return self.home / KEPT / name

    def unpublish(self) -> None:
        """Take away what is derived, and the signer's memory: what a receiver of the ledger doesn't get either."""
        shutil.rmtree(self.registry)
        shutil.rmtree(self.home / "keys")

    @contextmanager
    def unguarded(self) -> Iterator[sqlite3.Connection]:
        """The database without its triggers, which are back afterwards."""
        with closing(sqlite3.connect(self.path)) as connection:
            guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.commit()
            yield connection
            for _, guard in guards:
                connection.execute(guard)
            connection.commit()

    def sql(self, script: str) -> None:
        """Run SQL behind the triggers' back."""
        with self.unguarded() as connection:
            connection.executescript(script)

    def guarded_sql(self, script: str) -> None:
        """Run SQL with the triggers as they are."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.executescript(script)
            connection.commit()

    def rows(self) -> Rows:
        """Every event's row."""
        with closing(sqlite3.connect(self.path)) as connection:
            return [StoredRow._make(row) for row in connection.execute("SELECT * FROM event ORDER BY seq")]

    def last(self, type_name: str) -> StoredRow:
        """The newest row of a type."""
        return [row for row in self.rows() if row.type == type_name][-1]

    def payload(self, type_name: str) -> Any:
        """The newest payload of a type."""
        return json.loads(self.last(type_name).payload)

    def write(self, rows: Rows, *, ledger_id: str | None = None) -> None:
        """Write history anew with every place, hash and tree node recomputed: what a careful forger does."""
        with self.unguarded() as connection:
            if ledger_id is None:
                (ledger_id,) = connection.execute("SELECT ledger_id FROM ledger_meta").fetchone()
            else:
                genesis = genesis_hash(ledger_id)
                connection.execute("UPDATE ledger_meta SET ledger_id = ?, genesis_hash = ?", (ledger_id, genesis))
            connection.execute("DELETE FROM event")
            connection.execute("DELETE FROM tree_node")
            leaves = [row.event_hash for row in _chained(rows, ledger_id)]
            connection.executemany(INSERT_EVENT, _chained(rows, ledger_id))
            for place in range(len(leaves) // 16):
                connection.execute(INSERT_NODE, (4, place, complete_root(leaves[place * 16 : place * 16 + 16])))
            connection.commit()

    def append(self, row: StoredRow, **columns: object) -> None:
        """Add a row at the end with right hashes, under an id and a key of its own, no earlier than the others."""
        rows = self.rows()
        own = {"event_id": NEW_ID.format(len(rows)), "idempotency_key": None, "recorded_at": rows[-1].recorded_at}
        self.write([*rows, row._replace(**(own | columns))])

    def append_again(self, type_name: str, change: Callable[[Any], object], **columns: object) -> None:
        """Add the newest event of a type again, its payload changed, with right hashes."""
        row, payload = self.last(type_name), self.payload(type_name)
        change(payload)
        self.append(row._replace(payload=canonical(payload).decode()), **columns)

    def blob(self, digest: str) -> Path:
        """Where a blob is stored."""
        return self.runs / "cas" / digest[:2] / digest


def _chained(rows: Rows, ledger_id: str) -> Rows:
    head, versions, made = genesis_hash(ledger_id), dict[str, int](), []
    for seq, row in enumerate(rows, start=1):
        versions[row.stream] = versions.get(row.stream, 0) + 1
        row = row._replace(
            seq=seq,
            stream_version=versions[row.stream],
            payload_sha256=hashlib.sha256(row.payload.encode()).digest(),
            prev_hash=head,
        )
        made.append(sealed(row))
        head = made[-1].event_hash
    return made
