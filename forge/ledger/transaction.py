"""Runs one write: takes the lock, begins a transaction, and releases both whatever happens."""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from forge.errors import IntegrityError, LedgerCorrupt
from forge.ledger.connection import write_ahead
from forge.ledger.lock import WriterLock


class WriteTransaction:
    """Hold the lock and a write transaction for a block; commit at its end, roll back on any error.

    It can be entered many times. It is a class and no generator, because every append uses it and a generator is
    slower.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: WriterLock) -> None:
        self._name = os.fspath(path)
        self._connection = connection
        self._lock = lock
        self._process = os.getpid()
        self._file = _file_identity(self._name)
        self._ahead = False

    def __enter__(self) -> None:
        if os.getpid() != self._process:
            raise IntegrityError(
                f"{self._name}: the ledger was opened by process {self._process}, this is {os.getpid()}: "
                "open it again after a fork"
            )
        self._lock.take()
        try:
            if _file_identity(self._name) != self._file:
                raise LedgerCorrupt(f"{self._name}: another file has replaced it; open it again")
            if not self._ahead:
                write_ahead(self._connection, Path(self._name))
                self._ahead = True
            self._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._leave()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._connection.execute("COMMIT")
        finally:
            self._leave()

    def _leave(self) -> None:
        try:
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
        finally:
            self._lock.release()


def _file_identity(name: str) -> tuple[int, int]:
    found = os.stat(name)
    return found.st_dev, found.st_ino
