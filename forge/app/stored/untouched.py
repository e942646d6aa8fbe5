"""Opens a database for reading without leaving a file beside it."""

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote


def connect_untouched(path: Path, *, timeout_s: float) -> sqlite3.Connection:
    """Return a connection that only reads; raise sqlite3.Error if the file can't be read.

    SQLite makes two files beside a database with a write-ahead log, also for a reader. Where there is no such log, or
    it is empty, the file holds everything, and is read as one that doesn't change.
    """
    log = path.with_name(f"{path.name}-wal")
    still = "" if log.exists() and log.stat().st_size else "&immutable=1"
    return sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro{still}", uri=True, timeout=timeout_s)
