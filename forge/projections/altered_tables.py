"""Compares `history.db` with what the events give, row by row, for audits and publications answer from it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from forge.ledger.audit.read_only import connect_to_read
from forge.ledger.audit.report import AuditProblem
from forge.projections import latest_speedups, recent_times
from forge.projections.catch_up import FILE, read_cursor
from forge.projections.fold import Position
from forge.projections.own_objects import altered_objects
from forge.projections.schema import tables
from forge.projections.sqlite_file import add_indexes, table_digest

_CURSOR = "cursor"
"""Name of the table that says how far the events are folded; it is compared before the others."""


def folded_up_to(folder: Path) -> int | None:
    """Return the event up to which a published file is folded; None if no command takes it as it is."""
    if not (folder / FILE).is_file():
        return None
    try:
        with closing(connect_to_read(folder / FILE, timeout_s=30)) as published:
            cursor = None if _CURSOR in altered_objects(published) else read_cursor(published)
            return None if cursor is None else cursor.seq
    except sqlite3.Error:
        return None


def altered_tables(folder: Path, folded: sqlite3.Connection, head: Position) -> Iterator[AuditProblem]:
    """Yield a problem for each table beside the ledger that differs from `folded`, where all up to `head` is folded.

    A file whose cursor is elsewhere isn't reported, nor one that is damaged: it is built anew before it answers.
    """
    try:
        with closing(connect_to_read(folder / FILE, timeout_s=30)) as published:
            published.execute("BEGIN")
            altered = altered_objects(published)
            cursor = None if _CURSOR in altered else read_cursor(published)
            if cursor is None or cursor.head != head:
                return
            for name in altered:
                found = "something else: forge ledger rebuild replaces it"
                yield AuditProblem(None, f"published {FILE}: {name}", "the tables, indexes and views of Forge", found)
            if altered:
                return
            add_indexes(folded)
            recent_times.derive(folded, None)
            latest_speedups.derive(folded, None)
            for name, table in tables().items():
                if name != _CURSOR and table_digest(published, table) != table_digest(folded, table):
                    found = "other rows: forge ledger rebuild says what differed and replaces them"
                    yield AuditProblem(None, f"published {FILE}: {name}", "the rows that the events give", found)
    except sqlite3.Error:
        return
