"""The ledger beside a registry, where somebody put another database in its place."""

import sqlite3
from contextlib import closing

import pytest

from forge.lookup import Registry
from forge.lookup.beside import newest_decision
from tests.lookup.asking import ASK, publish
from tests.projections.histories import opened, promoted

ENDLESS = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more)"
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
        database.executescript(content)
    assert newest_decision(str(tmp_path)) == newest
    registry = Registry.open(tmp_path)
    assert registry.health().ok
    assert registry.lookup(**ASK).kernel is not None
