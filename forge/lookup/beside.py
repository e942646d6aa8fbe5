"""Whether the ledger beside a published registry has decided something that isn't published."""

from forge.lookup.frozen import Frozen

LEDGER_FILE = "kernel_registry.db"
DECISIONS = ("BenchmarkInvalidated", "KernelDeprecated", "KernelPromoted", "KernelRevoked", "ReplicationRecorded")
"""Types of the events that may change what a lookup answers."""
LEDGER = "SELECT ledger_id FROM ledger_meta"
"""Query for the ledger's id."""
NEWEST = "SELECT max(seq) FROM event WHERE type = ?"
"""Query for the number of the newest event of a type."""
BUSY_TIMEOUT_S = 1.0
"""Seconds to wait for a lock. After that a health check goes on without the ledger."""

STEPS, MOST_LOOKS = 1_000_000, 50
"""Steps of SQLite between two looks at a question, and looks before it is given up. Chosen; with the index it takes
some hundred steps. In another database a view may stand in the table's place that never ends."""
LONGEST_VALUE = 1 << 20
"""Largest text or blob in bytes that SQLite may make. No row of a ledger has a longer one."""


class Decided(Frozen):
    """What the ledger beside a registry has decided."""

    __slots__ = ("ledger_id", "seq")

    ledger_id: str
    seq: int
    """Number of the newest decision about kernels; 0 before the first."""

    def __init__(self, ledger_id: str, seq: int) -> None:
        self._fill(ledger_id=ledger_id, seq=seq)

    def is_published(self, ledger_id: str, seq: int) -> bool:
        """Return whether a publication of that ledger, up to that event, has all of it."""
        return self.ledger_id == ledger_id and self.seq <= seq


def newest_decision(home: str) -> Decided | None:
    """Return the newest decision about kernels in `home`; None if the ledger can't be read.

    Costs six lookups in an index. Nothing is written: without a log beside it the file holds every event.
    """
    import os
    import sqlite3
    from contextlib import closing
    from urllib.parse import quote

    path = f"{home}/{LEDGER_FILE}"
    try:
        journal = f"{path}-journal"
        if not os.path.isfile(path) or (os.path.exists(journal) and not os.path.isfile(journal)):
            return None  # SQLite would wait for a pipe in the place of a journal
        log = f"{path}-wal"
        still = "" if os.path.exists(log) and os.path.getsize(log) else "&immutable=1"
        uri = f"file:{quote(os.fsencode(path))}?mode=ro{still}"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            looks = iter(range(MOST_LOOKS))
            connection.set_progress_handler(lambda: next(looks, None) is None, STEPS)
            (ledger_id,) = connection.execute(LEDGER).fetchone()
            found = [connection.execute(NEWEST, (name,)).fetchone()[0] for name in DECISIONS]
    except (OSError, sqlite3.Error, TypeError):  # TypeError: the table that names the ledger is empty
        return None
    return Decided(str(ledger_id), max((seq for seq in found if type(seq) is int), default=0))
