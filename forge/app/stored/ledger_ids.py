"""Lists the ids that a ledger names, for the completion of a shell; imports little, since a shell waits for it.

The names are read from the ledger's rows as they are. Nothing is decided by them.
"""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from forge.app.stored.untouched import connect_untouched
from forge.app.user.home import LEDGER_FILE, find_home
from forge.errors import ForgeError

MOST_NAMES = 2000
"""Number of the newest names of a kind that are shown. Chosen; more names take longer to read than a person waits
for a completion."""
BUSY_TIMEOUT_S = 0.5
"""Seconds to wait for a lock before no name is shown. Chosen; a person who asks for a completion won't wait
longer."""
QUERIES = {
    "run": "SELECT json_extract(payload, '$.run_id') FROM event WHERE type = 'RunStarted'",
    "task": "SELECT json_extract(payload, '$.task_id') FROM event WHERE type = 'TaskCreated'",
    "kernel": "SELECT json_extract(payload, '$.kernel_id') FROM event WHERE type = 'KernelPromoted'",
    "session": "SELECT json_extract(payload, '$.session_id') FROM event WHERE type = 'SessionOpened'",
    "op": "SELECT json_extract(payload, '$.task.op') FROM event WHERE type = 'TaskCreated'",
}
"""Kind of name -> the query for all of them."""
PLAIN = re.compile(r"[A-Za-z0-9_.:@+-]{1,200}")
"""Form of a name that a shell takes as it is."""


def known_names(kind: str, named_home: str | None) -> list[str]:
    """Return the names of a kind in the workspace that is meant, newest first; none if it can't be read."""
    try:
        path = find_home(Path(named_home) if named_home else None) / LEDGER_FILE
        with closing(connect_untouched(path, timeout_s=BUSY_TIMEOUT_S)) as ledger:
            rows = ledger.execute(f"{QUERIES[kind]} ORDER BY seq DESC LIMIT {MOST_NAMES}").fetchall()
    except (ForgeError, OSError, ValueError, sqlite3.Error):
        return []
    return list(dict.fromkeys(name for (name,) in rows if isinstance(name, str) and PLAIN.fullmatch(name)))
