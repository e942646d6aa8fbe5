"""SQL in the asker's own words, over the names that `SURFACE` lists, and nothing else.

Nobody reads the text to decide what it may do: the file is opened for reading alone, the connection refuses writes,
and SQLite asks `_allow` about every table, function and action while it compiles a statement
(https://www.sqlite.org/c3ref/set_authorizer.html). Time, rows and the size of a cell have limits of their own.
"""

import sqlite3
import time
from contextlib import closing

from forge.app.audit.answer import Answer, Cell
from forge.app.workspace import Workspace
from forge.errors import UsageError
from forge.projections.audit_views import SURFACE
from forge.projections.catch_up import FILE
from forge.projections.sqlite_file import connect

ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
FORBIDDEN_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "zipfile"})
TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
CELL_BYTES = 1_000_000
"""The longest text that one cell, or a step on the way to it, may have."""
STATEMENT_BYTES = 100_000
STEPS_BETWEEN_LOOKS = 10_000
"""Steps of SQLite's machine between two looks at the clock: about a millisecond."""
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: CELL_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: STATEMENT_BYTES,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
}
"""https://www.sqlite.org/limits.html"""
NEXT = "forge audit views"


def views(workspace: Workspace) -> Answer:
    """The names that may be asked, their columns, and what each answers."""
    with workspace.publication.tables() as connection:
        rows = tuple(
            (name, ", ".join(column[1] for column in connection.execute(f"PRAGMA table_info({name})")), meaning)
            for name, meaning in SURFACE.items()
        )
    return Answer(
        "What `forge audit sql` may read",
        ("name", "columns", "answers"),
        rows,
        notes=("names and columns are stable: one that goes, or changes its meaning, is told in the changelog",),
    )


def ask(workspace: Workspace, untrusted_sql: str, *, limit: int, seconds: float) -> Answer:
    """The first `limit` rows of one statement, within `seconds`; raise UsageError for anything but reading."""
    with workspace.publication.tables():  # the file is at the ledger's head from here on
        pass
    with closing(connect(workspace.registry_root / FILE, read_only=True)) as connection:
        confine(connection, deadline=time.monotonic() + seconds)
        try:
            cursor = connection.execute(untrusted_sql)
            if cursor.description is None:
                raise UsageError(f"{_shown(untrusted_sql)} answers nothing: expected a SELECT", hint=NEXT)
            columns = _distinct(column[0] for column in cursor.description)
            rows: list[tuple[Cell, ...]] = cursor.fetchmany(limit + 1)
        except (sqlite3.Error, sqlite3.Warning, UnicodeError, ValueError) as error:
            raise _refusal(untrusted_sql, error, seconds) from error
    more = len(rows) > limit
    notes = (f"only the first {limit} rows: more with --limit",) if more else ()
    found = tuple(tuple(cell.hex() if isinstance(cell, bytes) else cell for cell in row) for row in rows[:limit])
    return Answer("", columns, found, notes=notes, more={"complete": not more})


def confine(connection: sqlite3.Connection, *, deadline: float) -> None:
    """Leave a connection nothing but reading what `SURFACE` names, until `deadline` on the monotonic clock."""
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    for category, most in LIMITS.items():
        connection.setlimit(category, most)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_LOOKS)
    connection.set_authorizer(_allow)


def _allow(action: int, first: str | None, second: str | None, _: str | None, inside: str | None) -> int:
    """What SQLite may compile. `inside` is the view through which a table is read.

    A read of no column counts rows; SQLite asks it of the statement's own WITH tables as well, by their names.
    """
    match action:
        case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
            allowed = True
        case sqlite3.SQLITE_READ:
            allowed = first in SURFACE or inside in SURFACE or first in TABLE_FUNCTIONS or second == ""
        case sqlite3.SQLITE_FUNCTION:
            allowed = second is not None and second.lower() not in FORBIDDEN_FUNCTIONS
        case _:
            allowed = False
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _refusal(untrusted_sql: str, error: Exception, seconds: float) -> UsageError:
    """What to say of a statement that SQLite refused or that took too long."""
    said = " ".join(str(error).split())
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
        return UsageError(
            f"{_shown(untrusted_sql)} took more than {seconds:g} s: expected a narrower question, or --seconds",
            hint=NEXT,
        )
    forbidden = getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY)
    expected = "one statement that reads what `forge audit views` lists" if forbidden else "one SELECT"
    return UsageError(f"{_shown(untrusted_sql)}: the database says: {said}; expected {expected}", hint=NEXT)


def _shown(untrusted_sql: str) -> str:
    plain = " ".join(untrusted_sql.split())
    return repr(plain if len(plain) <= 80 else f"{plain[:77]}...")


def _distinct(names: object) -> tuple[str, ...]:
    """Column names with later twins numbered: a row is a document, and a name stands in it once."""
    found: list[str] = []
    for name in names:  # type: ignore[attr-defined]
        twins = sum(one == name or one.startswith(f"{name}_") for one in found)
        found.append(f"{name}_{twins + 1}" if name in found else name)
    return tuple(found)
