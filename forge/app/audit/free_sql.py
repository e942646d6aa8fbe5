"""Answers SQL that the user wrote, over the names that `SURFACE` lists, and nothing else.

`sql_child` asks SQLite, which decides what a statement may do. This module kills the process if it answers too late.
"""

import json
import subprocess
import sys
from itertools import count
from pathlib import Path

from forge.app.audit import sql_child
from forge.app.audit.answer import Answer, Cell
from forge.app.stored.tables import HasTables
from forge.errors import UsageError
from forge.projections.sql_surface import SURFACE

CHILD = Path(sql_child.__file__)
"""Program that runs the statement."""
GRACE_S = 2.0
"""Seconds that the process gets beyond its own limit, to start and to stop by itself. Chosen; a longer one delays the
answer if the process hangs."""
NEXT_COMMAND = "forge audit views"
MIB = 2**20
"""Number of bytes in a mebibyte."""
LIMITS = {
    "memory": f"took more than {sql_child.MEMORY_BYTES // MIB} MiB of memory: expected fewer or smaller rows",
    "too_much": f"answers more than {sql_child.ANSWER_BYTES // MIB} MiB: expected fewer or smaller rows",
    "nothing": "answers nothing: expected a SELECT",
}
"""Reason for a missing answer -> what the message says of it."""


def views(workspace: HasTables) -> Answer:
    """Return the names that may be read, their columns, and what each answers."""
    with workspace.publication.tables() as connection:
        rows = tuple(
            (name, ", ".join(column[1] for column in connection.execute(f"PRAGMA table_info({name})")), meaning)
            for name, meaning in SURFACE.items()
        )
    return Answer(
        "What `forge audit sql` may read",
        ("name", "columns", "answers"),
        rows,
        notes=("names and columns are stable: the changelog lists each that is removed or changes its meaning",),
    )


def ask(workspace: HasTables, untrusted_sql: str, *, limit: int, seconds: float) -> Answer:
    """Return the first `limit` rows of one statement within `seconds`; raise UsageError if it does more than read."""
    with workspace.publication.tables_file() as file:
        question: sql_child.SqlQuestion = {
            "uri": f"{file.absolute().as_uri()}?mode=ro",
            "sql": untrusted_sql,
            "rows": limit + 1,
            "seconds": seconds,
            "names": list(SURFACE),
        }
        lines = _run(question)
    if isinstance(lines[-1], dict):
        raise _refusal(untrusted_sql, str(lines[-1]["refused"]), str(lines[-1]["said"]), seconds)
    columns, *rows = lines
    more = len(rows) > limit
    notes = (f"only the first {limit} rows: more with --limit",) if more else ()
    found: tuple[tuple[Cell, ...], ...] = tuple(map(tuple, rows[:limit]))
    return Answer("", _distinct(columns), found, notes=notes, more={"complete": not more})


def _run(question: sql_child.SqlQuestion) -> list[list[Cell] | dict[str, str]]:
    """Return the lines that a child process answers with; lines missing because of its limits are no answer."""
    try:
        done = subprocess.run(
            (sys.executable, "-I", "-S", str(CHILD)),
            input=json.dumps(question).encode(),
            capture_output=True,
            timeout=question["seconds"] + GRACE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [{"refused": "late", "said": ""}]
    if done.returncode != 0 or not done.stdout:
        return [{"refused": "memory", "said": ""}]
    return [json.loads(line) for line in done.stdout.splitlines()]


def _refusal(untrusted_sql: str, why: str, said: str, seconds: float) -> UsageError:
    """Return the error for a statement that SQLite refused or that took too much."""
    asked = _shown(untrusted_sql)
    if why == "late":
        return UsageError(
            f"{asked} took more than {seconds:g} s: expected a narrower question, or --seconds", hint=NEXT_COMMAND
        )
    if why in LIMITS:
        return UsageError(f"{asked} {LIMITS[why]}", hint=NEXT_COMMAND)
    expected = "one statement that reads what `forge audit views` lists" if why == "forbidden" else "one SELECT"
    return UsageError(f"{asked}: the database says: {' '.join(said.split())}; expected {expected}", hint=NEXT_COMMAND)


def _shown(untrusted_sql: str) -> str:
    plain = " ".join(untrusted_sql.split())
    return repr(plain if len(plain) <= 80 else f"{plain[:77]}...")


def _distinct(names: object) -> tuple[str, ...]:
    """Return column names with duplicates numbered, because a row is a document with unique names."""
    found: list[str] = []
    for name in names:  # type: ignore[attr-defined]
        tried = (f"{name}_{number}" for number in count(2))
        found.append(next(one for one in tried if one not in found) if name in found else name)
    return tuple(found)
