"""Answers one SQL statement in a process that can be killed, with limited memory. It is run, never imported.

Forge doesn't parse the text to decide what it may do. The file is opened read-only, the connection refuses writes,
and SQLite asks about every table, function and action while it compiles a statement
(https://www.sqlite.org/c3ref/set_authorizer.html). A single call of a function can take longer than the time between
two looks at the clock. So the process that started this one kills it when its time is over.

stdin is one JSON document, `SqlQuestion`. stdout is the columns and then each row, one line of JSON each, or a
refusal.
"""

import json
import resource
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from typing import Literal, TypedDict

FORBIDDEN_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "zipfile"})
"""SQLite functions that could reach files or load code."""
TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
"""Table-valued functions that may be read beside `names`."""
CELL_BYTES = 1_000_000
"""Longest text in bytes that one cell, or a step on the way to it, may have. Chosen: an answer has 134 such cells at
most (`ANSWER_BYTES`). SQLite's own limit is a thousand times larger."""
ANSWER_BYTES = 2**27
"""Size of all rows together as they are written, in bytes, at most. Chosen; the command holds the whole answer in
memory."""
MEMORY_BYTES = 2**30
"""Memory of this process in bytes, at most. Sorting happens in memory too, so nothing is written to a disk. Chosen:
eight times the longest answer."""
STATEMENT_BYTES = 100_000
"""Longest statement in bytes. Chosen; a statement of a person is far shorter, and a longer one costs time to
parse."""
STEPS_BETWEEN_LOOKS = 10_000
"""Number of SQLite's steps between two looks at the clock: about a millisecond, for short steps."""
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: CELL_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: STATEMENT_BYTES,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
}
"""Limit of SQLite -> its value (https://www.sqlite.org/limits.html)."""


class SqlQuestion(TypedDict):
    """A statement, the file it reads, and its limits."""

    uri: str
    sql: str
    rows: int
    seconds: float
    names: list[str]
    """Tables and views that may be read."""


class TooMuch(ValueError):
    """An answer longer than `ANSWER_BYTES`."""


Refused = Literal["said", "forbidden", "late", "memory", "too_much", "nothing"]
"""Reasons for no answer: an error of SQLite, an action other than reading, a limit, or a statement without rows."""


def main() -> None:
    """Answer the question on stdin."""
    question: SqlQuestion = json.load(sys.stdin)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        _answer(question)
    except (sqlite3.Error, sqlite3.Warning) as error:
        _refuse(_kind(error), str(error))
    except UnicodeError as error:
        _refuse("said", str(error))
    except TooMuch:
        _refuse("too_much", "")
    except MemoryError:
        _refuse("memory", "")


def _answer(question: SqlQuestion) -> None:
    with closing(sqlite3.connect(question["uri"], uri=True, isolation_level=None)) as connection:
        confine(connection, names=frozenset(question["names"]), deadline=time.monotonic() + question["seconds"])
        cursor = connection.execute(question["sql"])
        if cursor.description is None:
            _refuse("nothing", "")
            return
        left = ANSWER_BYTES - _write([column[0] for column in cursor.description])
        for row in islice(cursor, question["rows"]):
            left -= _write([cell.hex() if isinstance(cell, bytes) else cell for cell in row])
            if left < 0:
                raise TooMuch


def _write(document: object) -> int:
    line = json.dumps(document) + "\n"
    sys.stdout.write(line)
    return len(line)


def _refuse(why: Refused, said: str) -> None:
    _write({"refused": why, "said": said})


def _kind(error: Exception) -> Refused:
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        return "late"
    return "forbidden" if code in (sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY) else "said"


def confine(connection: sqlite3.Connection, *, names: frozenset[str], deadline: float) -> None:
    """Restrict a connection to reading `names`, until `deadline` on the monotonic clock."""
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    for category, most in LIMITS.items():
        connection.setlimit(category, most)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_LOOKS)
    connection.set_authorizer(_allowing(names))


def _allowing(names: frozenset[str]) -> Callable[[int, str | None, str | None, str | None, str | None], int]:
    """Return the function that allows or refuses what SQLite compiles; `inside` is the view that reads a table.

    A read of no column counts rows. SQLite also asks it for the statement's own WITH tables, by their names. Such a
    table may have the name of a view: SQLite's own tables can't be read through either.
    """

    def allow(action: int, first: str | None, second: str | None, _: str | None, inside: str | None) -> int:
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
                allowed = True
            case sqlite3.SQLITE_READ:
                schema = first is not None and first.lower().startswith("sqlite_")
                known = first in names or inside in names or first in TABLE_FUNCTIONS or second == ""
                allowed = known and not schema
            case sqlite3.SQLITE_FUNCTION:
                allowed = second is not None and second.lower() not in FORBIDDEN_FUNCTIONS
            case _:
                allowed = False
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    return allow


if __name__ == "__main__":
    main()
