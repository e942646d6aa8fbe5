"""Every column of every table, edited by someone who owns the file: each single edit is found.

What there is to edit is asked of the database itself, so that a table which a later format adds is edited too.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from forge.app.ledger.bundles import export
from forge.app.ledger.signing import checkpoint
from forge.app.user.home import LEDGER_FILE
from forge.app.workspace import Workspace
from forge.ledger.audit.history import audit
from tests.ledger.making import edit_as_owner
from tests.ledger.sharing import taken_in
from tests.ledger.suites.ledgers import fill
from tests.ledger.suites.sizes import LONG

TOOLS = ("alembic_version", "sqlite_")
"""Tables that tools keep: they say nothing about history."""


def silent(_: str) -> None:
    """Ignore the progress."""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger with rows in every table: signed, and with another ledger's events taken in."""
    folder = tmp_path_factory.mktemp("everything")
    with Workspace.create(folder / "other", origin="kernels/other") as other:
        fill(other.ledger, 20)
        export(other, folder / "bundle", since=0, progress=silent)
    with Workspace.create(folder / "own", origin="kernels/own") as own:
        fill(own.ledger, 20)
        taken_in(own.ledger, own.blobs, folder / "bundle")
        fill(own.ledger, 20)
        checkpoint(own, new_key=False, copy=None)
    path = folder / "own" / LEDGER_FILE
    assert audit(path).ok, audit(path).problems
    return path


@pytest.fixture
def edited(everything: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A copy after some SQL, with every trigger back in its place."""

    def run(sql: str) -> Path:
        path = Path(shutil.copy(everything, tmp_path / "k.db"))
        edit_as_owner(path, sql)
        return path

    return run


def tables(path: Path) -> dict[str, list[str]]:
    """Every table of ours, and its columns."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            for name in names
            if not name.startswith(TOOLS)
        }


def rows(path: Path, table: str) -> list[str]:
    """A row in the middle of a table, or the first and the last too, each as a condition that only it meets."""
    keys = {"event": ["seq"], "foreign_event": ["ledger_id", "seq"], "tree_node": ["level", "place"]}.get(
        table, ["one"]
    )
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(f"SELECT {', '.join(keys)} FROM {table} ORDER BY {', '.join(keys)}").fetchall()
    assert found, f"no row in {table} to edit"
    places = sorted({0, len(found) // 2, len(found) - 1}) if LONG else [len(found) // 2]
    return [
        " AND ".join(f"{key} = {value!r}" for key, value in zip(keys, found[place], strict=True)) for place in places
    ]


def edits(path: Path, table: str, column: str, where: str) -> Iterator[str]:
    """Other values of the same kind, and NULL where the table allows it."""
    with closing(sqlite3.connect(path)) as connection:
        (kind,) = connection.execute(f"SELECT typeof({column}) FROM {table} WHERE {where}").fetchone()
        nullable = not next(row[3] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] == column)
    other_byte = f"CASE substr({column}, 32) WHEN x'ab' THEN x'cd' ELSE x'ab' END"  # a digest may end in any
    changed = {
        "integer": [f"{column} + 1000", f"{column} + 4"],
        "text": [f"{column} || 'x'", f"replace({column}, substr({column}, -1), '~')"],
        "blob": [f"zeroblob(length({column}))", f"CAST(substr({column}, 1, 31) || {other_byte} AS BLOB)"],
        "null": ["'x'"],
    }[kind]
    if nullable and kind != "null":
        changed.append("NULL")
    yield from (f"UPDATE OR REPLACE {table} SET {column} = {value} WHERE {where}" for value in changed)


@pytest.mark.slow
def test_every_edit_of_every_column_of_every_table_is_found(everything: Path, edited: Callable[[str], Path]) -> None:
    made, missed = 0, []
    for table, columns in tables(everything).items():
        for where in rows(everything, table):
            for column in columns:
                for sql in edits(everything, table, column, where):
                    made += 1
                    if audit(edited(sql)).ok:
                        missed.append(sql)
    assert missed == []
    print(f"{made} edits, all found")
    assert made > 70


def test_every_row_that_is_left_out_or_written_anew_is_found(everything: Path, edited: Callable[[str], Path]) -> None:
    for table in tables(everything):
        for where in rows(everything, table):
            if (table, where) == ("event", "seq = 43"):
                continue  # cutting off the end: found against a checkpoint
            assert not audit(edited(f"DELETE FROM {table} WHERE {where}")).ok, f"{table}: {where} left out"
        assert not audit(edited(f"DELETE FROM {table}")).ok, f"{table} emptied"
    for table in ("event", "foreign_event"):
        anew = f"CREATE TEMP TABLE t AS SELECT * FROM {table} WHERE seq = 9; UPDATE t SET actor = 'cli:eve';"
        assert not audit(edited(f"{anew} INSERT OR REPLACE INTO {table} SELECT * FROM t")).ok
        assert not audit(
            edited(f"{anew} UPDATE t SET seq = 9000; INSERT OR IGNORE INTO {table} SELECT * FROM t")
        ).ok or (table == "event"), f"a row added to {table}"


def test_every_exchange_of_two_neighbours_is_found(everything: Path, edited: Callable[[str], Path]) -> None:
    for table in ("event", "foreign_event"):
        for seq in (2, 10, 16):
            swap = (
                f"UPDATE {table} SET seq = 9999 WHERE seq = {seq};"
                f"UPDATE {table} SET seq = {seq} WHERE seq = {seq + 1};"
                f"UPDATE {table} SET seq = {seq + 1} WHERE seq = 9999"
            )
            assert not audit(edited(swap)).ok, f"{table}: {seq} and {seq + 1}"


def test_everything_that_is_dropped_from_the_schema_is_named(everything: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(everything)) as connection:
        parts = connection.execute(
            "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
        ).fetchall()
    assert len(parts) > 10
    for kind, name in parts:
        path = Path(shutil.copy(everything, tmp_path / "k.db"))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"DROP {kind} {name}")
        (problem, *_) = audit(path).problems
        assert problem.what == (f"trigger {name}" if kind == "trigger" else "schema")


@pytest.mark.parametrize("left", range(1, 42, 1 if LONG else 10))
def test_every_truncation_contradicts_the_checkpoint(
    left: int, everything: Path, edited: Callable[[str], Path], tmp_path: Path
) -> None:
    """By itself a shorter history is sound, unless the import that foreign events rest on is cut off with it."""
    path = edited(f"DELETE FROM event WHERE seq > {left}; DELETE FROM tree_node WHERE (place + 1) << level > {left}")
    report = audit(path, checkpoint=(everything.parent / "kernel_registry" / "checkpoint").read_bytes())
    assert not report.ok
    assert report.checkpoint is not None
    assert report.checkpoint.verdict == "truncated"
