"""Answers one statement of SQL, in a process that can be stopped, with memory it can't exceed. Run, never imported.

Nobody reads the text to decide what it may do: the file is opened for reading alone, the connection refuses writes,
and SQLite asks about every table, function and action while it compiles a statement
(https://www.sqlite.org/c3ref/set_authorizer.html). A single call of a function can take longer than any look at the
clock comes round, so whoever started this process kills it when its time is over.

stdin is one JSON document, `Question`; stdout the columns and then each row, a line of JSON each, or a refusal.
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
TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
CELL_BYTES = 1_000_000
"""The longest text that one cell, or a step on the way to it, may have."""
ANSWER_BYTES = 2**27
"""Of all rows together, as they are written."""
MEMORY_BYTES = 2**30
"""Of this process; what is sorted is kept in memory, so nothing is written to a disk."""
STATEMENT_BYTES = 100_000
STEPS_BETWEEN_LOOKS = 10_000
"""Steps of SQLite's machine between two looks at the clock: about a millisecond, for short steps."""
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: CELL_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: STATEMENT_BYTES,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
}
"""https://www.sqlite.org/limits.html"""


class Question(TypedDict):
    """What is asked of which file."""

    uri: str
    sql: str
    rows: int
    seconds: float
    names: list[str]
    """The tables and views that may be read."""


class TooMuch(ValueError):
    """An answer beyond `ANSWER_BYTES`."""


Refused = Literal["said", "forbidden", "late", "memory", "too_much", "nothing"]
"""Why there is no answer: what SQLite said, an action that isn't reading, a limit, or a statement without rows."""


def main() -> None:
    """Answer the question on stdin."""
    question: Question = json.load(sys.stdin)
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


def _answer(question: Question) -> None:
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
    """Leave a connection nothing but reading what `names` has, until `deadline` on the monotonic clock."""
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA temp_store = MEMORY")
    for category, most in LIMITS.items():
        connection.setlimit(category, most)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_LOOKS)
    connection.set_authorizer(_allowing(names))


def _allowing(names: frozenset[str]) -> Callable[[int, str | None, str | None, str | None, str | None], int]:
    """What SQLite may compile. `inside` is the view through which a table is read.

    A read of no column counts rows; SQLite asks it of the statement's own WITH tables as well, by their names. Such a
    table may be named as a view is: SQLite's own tables can't be read through either.
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
