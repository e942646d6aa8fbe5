"""Brings `history.db` up to the ledger's head: from its cursor on, or from the first event.

The cursor is written in the same transaction as the rows. It names a place and the hash of the event there. If the
ledger was replaced, restored or cut off, the hash at that place is different, and the file is built anew.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from forge.domain.digest import Digest
from forge.errors import LedgerCorrupt
from forge.ledger.audit.report import MALFORMED_ERRORS
from forge.ledger.failures import StorageErrors, storage_errors
from forge.ledger.replay import Line
from forge.projections import latest_speedups, recent_times
from forge.projections.audit_views import VIEWS
from forge.projections.fold import Position, Source, SourceHead
from forge.projections.folds import TAKERS
from forge.projections.history_version import PROJECTOR_VERSION, SCHEMA_VERSION
from forge.projections.own_objects import altered_objects
from forge.projections.schema import tables
from forge.projections.sqlite_file import (
    ASIDE,
    add_indexes,
    connect,
    create,
    discard,
    finish,
    overwrite,
    refused_by_the_disk,
    upsert,
)
from forge.projections.state import State

FILE = "history.db"
"""Name of the file of tables in the registry's folder."""
READ_CURSOR = """
    SELECT ledger_id, seq, event_hash, registry_seq, registry_hash, checkpoint_seq FROM cursor
    WHERE schema_version = ? AND projector_version = ?
"""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Place up to which the folds have come, and in which ledger."""

    ledger_id: str
    seq: int
    event_hash: Digest
    registry_seq: int
    """Newest event that changed what the registry's documents show; 0 before the first."""
    registry_hash: Digest
    checkpoint_seq: int | None
    """Place of the newest checkpoint."""

    @property
    def registry(self) -> Position:
        """Return the position from which the registry's documents were derived."""
        return Position(self.ledger_id, self.registry_seq, self.registry_hash)

    @property
    def head(self) -> Position:
        """Return the position up to which everything is folded."""
        return Position(self.ledger_id, self.seq, self.event_hash)


def read_cursor(connection: sqlite3.Connection) -> Cursor | None:
    """Return the tables' cursor; None if another version wrote them, or there is none."""
    try:
        row = connection.execute(READ_CURSOR, (SCHEMA_VERSION, PROJECTOR_VERSION)).fetchone()
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            return None
        raise
    return Cursor(*row) if row else None


def own_cursor(connection: sqlite3.Connection) -> Cursor | None:
    """Return the cursor as `read_cursor` does; None also if the file has tables, views or triggers of others."""
    return None if altered_objects(connection) else read_cursor(connection)


def publishing_errors(path: Path, source: Source) -> StorageErrors:
    """Return a translator of errors that says what is still true if the disk refuses here."""
    return storage_errors(path, left=f"recorded up to event {source.head.seq}, and what is published still stands")


def catch_up(path: Path, source: Source) -> tuple[Cursor, bool]:
    """Bring the file at `path` up to the ledger's head; return its cursor, and whether it was built anew.

    Only one process at a time may do this (see `publish.publishing`). Raises LedgerCorrupt if the events contradict
    each other, StorageFailed if the disk refuses. The file is then as it was.
    """
    with publishing_errors(path, source):
        cursor = _followed(path, source)
        if cursor is not None:
            return cursor, False
        with built(path.parent, source) as (aside, fresh):
            overwrite(path, aside)
            return fresh, True


def _followed(path: Path, source: Source) -> Cursor | None:
    """Fold the events since the file's cursor and return the new one; None if the file must be built anew."""
    if not os.path.lexists(path):
        return None
    try:
        with closing(connect(path)) as connection:
            cursor = own_cursor(connection)
            if cursor is None or not cursor.head.stands_in(source):
                return None
            head = source.head
            if cursor.seq == head.seq:
                return cursor
            connection.execute("BEGIN IMMEDIATE")
            try:
                cursor = fold(connection, source, head, after=cursor)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            return cursor
    except MALFORMED_ERRORS:
        return None  # the file, or an event, which is told when the file is built anew
    except sqlite3.DatabaseError as error:
        if refused_by_the_disk(error):
            raise
        return None  # damaged, or another database: the ledger holds everything that is needed to build it anew


@contextmanager
def built(folder: Path, source: Source) -> Iterator[tuple[Path, Cursor]]:
    """Yield a file beside the published one, folded from the first event; it is removed when the block ends."""
    descriptor, name = tempfile.mkstemp(prefix=ASIDE, suffix=".db", dir=folder)
    os.close(descriptor)
    aside = Path(name)
    try:
        connection = create(aside)
        try:
            connection.execute("BEGIN")
            with _events_of_known_form():
                cursor = fold(connection, source, source.head)
            connection.execute("COMMIT")
            add_indexes(connection)
            connection.execute("BEGIN")
            recent_times.derive(connection, None)
            latest_speedups.derive(connection, None)
            connection.execute("COMMIT")
            finish(connection, VIEWS)
        finally:
            connection.close()
        _make_last(aside)
        yield aside, cursor
    finally:
        discard(aside)


@contextmanager
def _events_of_known_form() -> Iterator[None]:
    """Raise LedgerCorrupt for content that no event of its type has: most folds don't parse payloads."""
    try:
        yield
    except (*MALFORMED_ERRORS, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError) as error:
        raise LedgerCorrupt(
            f"an event has content that can't be folded ({error!r}): history was edited or damaged; "
            "forge ledger verify names it",
            hint="forge ledger verify",
        ) from error


def _make_last(aside: Path) -> None:
    """Make the file durable before it replaces another."""
    descriptor = os.open(aside, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o644)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fold(connection: sqlite3.Connection, source: Source, head: SourceHead, *, after: Cursor | None = None) -> Cursor:
    """Fold every event between the cursor and `head` into the tables, and write the new cursor.

    Without a cursor the tables have no indexes yet, and the caller derives the tables that need them.

    Raises LedgerCorrupt if the events' numbers have a gap.
    """
    state = State(connection)
    seq, event_hash = (after.seq, after.event_hash) if after else (0, "")
    checkpoint = after.checkpoint_seq if after else None
    last: Line | None = None
    for line in source.lines(seq):
        if line.seq > head.seq:
            break
        if line.seq != seq + 1:
            raise LedgerCorrupt(f"event {line.seq} follows event {seq}: expected {seq + 1}; rebuild from zero")
        for take in TAKERS.get(line.type, ()):
            take(state, line, source)
        if line.type == "CheckpointPublished":
            checkpoint = line.seq
        seq, last = line.seq, line
        state.settle()
    state.flush()
    if after is not None:
        recent_times.derive(connection, state.remeasured)
        latest_speedups.derive(connection, state.remeasured)
    event_hash = last.event_hash.hex() if last else event_hash or head.event_hash
    if (seq, event_hash) != (head.seq, head.event_hash):
        raise LedgerCorrupt(
            f"the events folded end at {seq} ({event_hash}), the ledger's head is {head.seq} "
            f"({head.event_hash}): read again, or rebuild from zero"
        )
    if state.changed is not None:
        registry = (state.changed.seq, state.changed.event_hash.hex())
    else:
        registry = (after.registry_seq, after.registry_hash) if after else (0, head.event_hash)
    cursor = Cursor(source.ledger_id, seq, event_hash, *registry, checkpoint)
    _write(connection, cursor)
    return cursor


def _write(connection: sqlite3.Connection, cursor: Cursor) -> None:
    table = tables()["cursor"]
    row = {name: getattr(cursor, name) for name in Cursor.__slots__}
    row |= {"schema_version": SCHEMA_VERSION, "projector_version": PROJECTOR_VERSION}
    connection.execute(upsert(table), [row[column] for column in table.columns])
