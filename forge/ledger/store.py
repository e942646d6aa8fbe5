"""Writes and reads history; it is the only writer.

One append is one transaction: file lock, `BEGIN IMMEDIATE`, read the head, chain the rows to it, commit with an
fsync. If a call returns, its events are stored. If it raises, the ledger is as it was.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from forge.errors import StorageFailed
from forge.events import Event, Recorded
from forge.events.ledger import LedgerOpened
from forge.ledger.batch import Batch, PreparedBatch, prepare
from forge.ledger.chain import FORMAT, StoredRow, genesis_hash
from forge.ledger.connection import configure, connect, resolve_existing
from forge.ledger.create import built_aside
from forge.ledger.failures import NO_LEDGER_MADE, NOTHING_WRITTEN, StorageErrors, storage_errors
from forge.ledger.lock import WriterLock
from forge.ledger.opening import open_checked
from forge.ledger.reading import Selection, known_types, pages, recorded
from forge.ledger.replay import Line, replay
from forge.ledger.schema import check_schema, migrate
from forge.ledger.statements import (
    INSERT_FOREIGN,
    INSERT_META,
    LAST_CHARACTER,
    SELECT_BY_KEY,
    SELECT_NEWEST,
    SELECT_STREAM_VERSION,
    SELECT_STREAMS,
)
from forge.ledger.transaction import WriteTransaction
from forge.ledger.tree import StoredTree
from forge.ledger.writing import Appended, Head, read_head, write

OPENING_ACTOR = "system:forge"
"""Actor of the first event of a ledger."""


class Ledger:
    """An open ledger. Only the process and the thread that opened it may use it."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        lock: WriterLock | None,
        *,
        ledger_id: str,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        self.path = path
        self.ledger_id = ledger_id
        self._connection = connection
        self._lock = lock
        self._writing = WriteTransaction(path, connection, lock) if lock else None
        self.recorded_seq = 0
        """The last event that was appended through this object; 0 before the first append."""
        self._now = now
        self._new_id = new_id
        self._genesis = genesis_hash(ledger_id)
        self._closed = False

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        ledger_id: str,
        origin: str,
        forge_version: str,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
        public_key: str | None = None,
    ) -> Self:
        """Create a new ledger at `path`, with LedgerOpened as its first event; raise UsageError if one exists."""
        opened = LedgerOpened(ledger_id=ledger_id, origin=origin, forge_version=forge_version, public_key=public_key)
        first = Batch(events=[opened], actor=OPENING_ACTOR, correlation_id=opened.stream())
        prepared = prepare(first, opening=True)
        with storage_errors(path, left=NO_LEDGER_MADE), built_aside(path) as aside:
            migrate(aside)
            with closing(connect(aside, read_only=False)) as connection:
                configure(connection, aside, read_only=False)
                check_schema(connection, aside)
                connection.execute(INSERT_META, (1, ledger_id, origin, FORMAT, genesis_hash(ledger_id)))
                lock = WriterLock(aside)
                with cls(aside, connection, lock, ledger_id=ledger_id, now=now, new_id=new_id) as ledger:
                    ledger._write([prepared])
        return cls.open(path, now=now, new_id=new_id)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
        read_only: bool = False,
    ) -> Self:
        """Open a ledger; raise WorkspaceNotFound if there is none, LedgerCorrupt if it is damaged."""
        path = resolve_existing(path)
        with storage_errors(path):
            lock = None if read_only else WriterLock(path)
            try:
                connection, ledger_id = open_checked(path, lock=lock)
            except BaseException:
                if lock is not None:
                    lock.close()
                raise
        return cls(path, connection, lock, ledger_id=ledger_id, now=now, new_id=new_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, once; a writer merges its log under the lock, while no other process can write."""
        if self._closed:
            return
        self._closed = True
        if self._lock is None:
            self._connection.close()
            return
        with storage_errors(self.path):
            with self._lock.held():
                self._connection.close()
            self._lock.close()

    @property
    def head(self) -> Head:
        """Return the place and hash of the last event at this moment."""
        with storage_errors(self.path):
            seq, last_hash = read_head(self._connection, self._genesis)
        return Head(seq, last_hash.hex())

    def stream_version(self, stream: str) -> int:
        """Return how many events a stream has; 0 if it doesn't exist."""
        with storage_errors(self.path):
            return int(self._connection.execute(SELECT_STREAM_VERSION, (stream,)).fetchone()[0])

    def streams(self, beginning: str) -> list[str]:
        """Return the streams whose names begin so, in order: `run:2026` gives the runs of a year."""
        if not beginning.isprintable():  # no stream's name has other characters, and SQLite refuses a lone surrogate
            return []
        with storage_errors(self.path):
            found = self._connection.execute(SELECT_STREAMS, (beginning, beginning + LAST_CHARACTER)).fetchall()
        return [stream for (stream,) in found]

    def newest(self, type_name: str, *, before: int = 0) -> Recorded[Event] | None:
        """Return the last event of a type but `before`, by the index; None if there aren't as many."""
        (wanted,) = known_types((type_name,))
        with storage_errors(self.path):
            row = self._connection.execute(SELECT_NEWEST, (wanted, before)).fetchone()
        return None if row is None else recorded(StoredRow._make(row), self.path)

    def place_of(self, idempotency_key: str) -> int | None:
        """Return the sequence number of the first event of the command with this key; None if there is none."""
        with storage_errors(self.path):
            row = self._connection.execute(SELECT_BY_KEY, (f"{idempotency_key}#0",)).fetchone()
        return None if row is None else int(row[0])

    @contextmanager
    def tree(self) -> Iterator[StoredTree]:
        """Yield the Merkle tree over all events of this moment; later appends aren't seen inside the block."""
        with self.snapshot() as connection:
            seq, _ = read_head(connection, self._genesis)
            yield StoredTree(connection, seq)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside one read transaction; later appends aren't seen inside the block."""
        with storage_errors(self.path):
            self._connection.execute("BEGIN")
            try:
                self._connection.execute("SELECT seq FROM event LIMIT 1").fetchone()
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")

    def rows(
        self,
        *,
        after_seq: int = 0,
        stream: str | None = None,
        types: Collection[str] | None = None,
        correlation_id: str | None = None,
        limit: int | None = None,
    ) -> Iterator[StoredRow]:
        """Return the rows as they are stored, up to the current head, without parsing payloads."""
        wanted = Selection(
            after_seq=after_seq,
            until_seq=self.head.seq,
            stream=stream,
            types=known_types(types),
            correlation_id=correlation_id,
            limit=limit,
        )
        return pages(self._connection, self.path, wanted)

    def read(
        self,
        *,
        after_seq: int = 0,
        stream: str | None = None,
        types: Collection[str] | None = None,
        correlation_id: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Recorded[Event]]:
        """Return the events in order, up to the current head; raise LedgerCorrupt at the first damaged one."""
        rows = self.rows(after_seq=after_seq, stream=stream, types=types, correlation_id=correlation_id, limit=limit)
        return (recorded(row, self.path) for row in rows)

    def replay(self, *, after_seq: int, until_seq: int, types: Collection[str]) -> Iterator[Line]:
        """Return every event in this range for a fold, with the payloads of `types` only; raise LedgerCorrupt."""
        return replay(self._connection, self.path, after_seq=after_seq, until_seq=until_seq, types=types)

    def append(
        self,
        events: Sequence[Event],
        *,
        actor: str,
        correlation_id: str,
        causation_id: str | None = None,
        idempotency_key: str | None = None,
        expected: Mapping[str, int] | None = None,
    ) -> Appended:
        """Record the events of one command together.

        Raises ActorForbidden, ConcurrencyConflict, IdempotencyConflict, StorageFailed, or IntegrityError for an event
        that can't be stored. In each case nothing is written.
        """
        batch = Batch(
            events=events,
            actor=actor,
            correlation_id=correlation_id,
            causation_id=causation_id,
            idempotency_key=idempotency_key,
            expected=expected,
        )
        return self.append_many([batch])[0]

    def append_many(self, batches: Sequence[Batch]) -> list[Appended]:
        """Record many commands in one transaction: all or none. This is several times as fast as single appends."""
        return self._write([prepare(batch) for batch in batches])

    def take_in(self, ledger_id: str, rows: Iterator[StoredRow], batch: Batch) -> Appended:
        """Store another ledger's rows unchanged and record `batch`, which describes them, in one transaction."""
        prepared = prepare(batch)
        with self._errors(), self._transaction():
            self._connection.executemany(INSERT_FOREIGN, ((ledger_id, *row) for row in rows))
            (made,) = write(self._connection, [prepared], genesis=self._genesis, now=self._now, new_id=self._new_id)
        self._note([made])
        return made

    def _write(self, batches: Sequence[PreparedBatch]) -> list[Appended]:
        with self._errors(), self._transaction():
            made = write(self._connection, batches, genesis=self._genesis, now=self._now, new_id=self._new_id)
        self._note(made)
        return made

    def _note(self, made: Sequence[Appended]) -> None:
        self.recorded_seq = max([self.recorded_seq, *(one.last_seq for one in made if not one.replayed)])

    def _errors(self) -> StorageErrors:
        """Return a translator of errors that says what is stored if the disk refuses."""
        left = f"nothing was written after event {self.recorded_seq}" if self.recorded_seq else NOTHING_WRITTEN
        return storage_errors(self.path, left=left)

    def require_writable(self) -> None:
        """Raise StorageFailed if this ledger was opened for reading only."""
        self._transaction()

    def _transaction(self) -> WriteTransaction:
        if self._writing is None:
            raise StorageFailed(f"{self.path}: opened for reading only: expected a folder that you may write to")
        return self._writing
