"""Notices that a ledger has changed, without reading it."""

import sqlite3
from pathlib import Path

from forge.ledger.audit.read_only import connect_to_read

BUSY_S = 10.0
"""Time to wait for a writer that holds the file, in seconds; a commit takes milliseconds."""


class LedgerWatch:
    """Watches a ledger's file from the first call of `changed` to `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._seen: tuple[int, int] | None = None
        """Inode of the file, and SQLite's number for its content (sqlite.org/pragma.html#pragma_data_version)."""

    def changed(self) -> bool:
        """Return whether another process has committed since the last call; True at the first call.

        A ledger that was restored is another file, and so counts as changed. A file that is gone for the moment of a
        restore doesn't.
        """
        try:
            inode = self._path.stat().st_ino
        except FileNotFoundError:
            return False
        if self._connection is None or self._seen is None or self._seen[0] != inode:
            self.close()
            self._connection = connect_to_read(self._path, timeout_s=BUSY_S)
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        before, self._seen = self._seen, (inode, version)
        return before != self._seen

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
