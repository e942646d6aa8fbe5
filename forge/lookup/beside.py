"""Whether the ledger beside a published registry has decided something that isn't published."""

LEDGER_FILE = "kernel_registry.db"
DECISIONS = ("BenchmarkInvalidated", "KernelDeprecated", "KernelPromoted", "KernelRevoked", "ReplicationRecorded")
NEWEST = "SELECT max(seq) FROM event WHERE type = ?"
BUSY_TIMEOUT_S = 1.0
"""Seconds to wait for a lock. After that a health check goes on without the ledger."""


def newest_decision(home: str) -> int | None:
    """Return the number of the newest decision about kernels in `home`; None if the ledger can't be read.

    Costs five lookups in an index. Nothing is written: without a log beside it the file holds every event.
    """
    import os
    import sqlite3
    from contextlib import closing
    from urllib.parse import quote

    path = f"{home}/{LEDGER_FILE}"
    try:
        if not os.path.isfile(path):
            return None
        log = f"{path}-wal"
        still = "" if os.path.exists(log) and os.path.getsize(log) else "&immutable=1"
        uri = f"file:{quote(os.fsencode(path))}?mode=ro{still}"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S)) as connection:
            found = [connection.execute(NEWEST, (name,)).fetchone()[0] for name in DECISIONS]
    except (OSError, sqlite3.Error):
        return None
    return max((seq for seq in found if seq is not None), default=0)
