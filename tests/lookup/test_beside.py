"""The ledger beside a registry, where another program put a database of its own in its place."""

import sqlite3
from contextlib import closing

import pytest

from forge.lookup import Registry
from forge.lookup.beside import newest_decision
from tests.lookup.asking import ASK, publish
from tests.projections.histories import LEDGER_ID, opened, promoted

ENDLESS = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more)"
META = f"CREATE TABLE ledger_meta (ledger_id); INSERT INTO ledger_meta VALUES ('{LEDGER_ID}');"
TABLE = "CREATE TABLE event (seq, type); INSERT INTO event VALUES ({}, 'KernelRevoked')"


@pytest.mark.parametrize(
    ("content", "newest"),
    [
        (f"CREATE VIEW event AS {ENDLESS} SELECT n AS seq, iif(n, 'Other', '') AS type FROM more", None),
        ("CREATE TABLE event (seq, type AS (hex(zeroblob(seq)))); INSERT INTO event VALUES (90000000)", None),
        (TABLE.format("'later'"), 0),
        (TABLE.format("1e999"), 0),
        (TABLE.format("x'ff'"), 0),
        (TABLE.format("7"), 7),
        ("CREATE TABLE other (seq)", None),
    ],
    ids=["endless view", "huge column", "text", "infinity", "bytes", "number", "no events"],
)
def test_a_foreign_database_in_the_ledgers_place_holds_no_reader_up(tmp_path, content, newest):
    history = opened()
    promoted(history)
    publish(history, tmp_path)
    with closing(sqlite3.connect(tmp_path / "kernel_registry.db")) as database:
        database.executescript(META + content)
    decided = newest_decision(str(tmp_path))
    assert (None if decided is None else decided.seq) == newest
    registry = Registry.open(tmp_path)
    assert registry.health().ok
    assert registry.lookup(**ASK).kernel is not None


@pytest.mark.parametrize(
    ("ledger_id", "stale"), [(LEDGER_ID, False), ("01a1ffc0-9987-72a8-aba3-0895196a0894", True), (None, False)]
)
def test_a_registry_of_another_ledger_than_the_one_beside_it_is_stale(tmp_path, ledger_id, stale):
    history = opened()
    promoted(history)
    publish(history, tmp_path)
    with closing(sqlite3.connect(tmp_path / "kernel_registry.db")) as database:
        database.execute("CREATE TABLE ledger_meta (ledger_id)")
        database.executemany("INSERT INTO ledger_meta VALUES (?)", [(ledger_id,)] if ledger_id else [])
        database.executescript(TABLE.format("1"))
    assert Registry.open(tmp_path).health().stale is stale
