"""Append-only is the database's own rule: what it refuses any connection with default settings."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from forge.ledger.audit.history import audit
from forge.ledger.chain import StoredRow, sealed

from .making import duplicated, fill, new_id, open_ledger


@pytest.fixture
def other_connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program's connection: no settings of ours, autocommit."""
    with open_ledger(path) as ledger:
        fill(ledger, 4)
        ledger.append([duplicated(9)], actor="cli:ada", correlation_id="c", idempotency_key="k")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection
    report = audit(path)
    assert report.ok, report.problems


def rows(connection: sqlite3.Connection) -> list[StoredRow]:
    return [StoredRow._make(row) for row in connection.execute("SELECT * FROM event ORDER BY seq")]


def following(head: StoredRow) -> StoredRow:
    """The one row that may come next in a stream of its own."""
    return sealed(
        head._replace(
            seq=head.seq + 1,
            event_id=new_id(),
            stream="task:new",
            stream_version=1,
            idempotency_key=None,
            prev_hash=head.event_hash,
        )
    )


def insert(connection: sqlite3.Connection, row: StoredRow, verb: str = "INSERT") -> None:
    connection.execute(f"{verb} INTO event VALUES ({', '.join('?' * len(row))})", row)


@pytest.mark.parametrize("column", StoredRow._fields)
def test_no_column_can_be_updated(column: str, other_connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="no UPDATE of event"):
        other_connection.execute(f"UPDATE event SET {column} = {column} WHERE seq = 2")


@pytest.mark.parametrize("where", ["", " WHERE seq = 6", " WHERE seq = 3"])
def test_no_row_can_be_deleted(where: str, other_connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="no DELETE from event"):
        other_connection.execute(f"DELETE FROM event{where}")


@pytest.mark.parametrize("verb", ["INSERT", "INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL"])
@pytest.mark.parametrize(
    ("route", "says"),
    [
        ({"seq": 3}, "seq must be head"),
        ({"seq": 8}, "seq must be head"),
        ({"seq": None}, "seq must be head"),
        ({"prev_hash": b"\0" * 32}, "prev_hash must be"),
        ({"stream_version": 2}, "stream_version must be"),
        ({"stream": "old", "stream_version": 1}, "stream_version must be"),
        ({"event_id": "old"}, "event_id was used"),
        ({"idempotency_key": "k#0"}, "idempotency_key was used"),
    ],
    ids=str,
)
def test_only_the_next_row_can_be_inserted_by_any_verb(
    verb: str, route: dict[str, object], says: str, other_connection: sqlite3.Connection
) -> None:
    before = rows(other_connection)
    old = before[2]
    wanted = {name: getattr(old, name) if value == "old" else value for name, value in route.items()}
    row = following(before[-1])._replace(**wanted)
    with pytest.raises(sqlite3.IntegrityError, match=says):
        insert(other_connection, row, verb)
    assert rows(other_connection) == before


def test_an_upsert_is_no_way_around(other_connection: sqlite3.Connection) -> None:
    before = rows(other_connection)
    sql = f"INSERT INTO event VALUES ({', '.join('?' * 15)}) ON CONFLICT (seq) DO UPDATE SET actor = 'x:y'"
    with pytest.raises(sqlite3.IntegrityError, match="seq must be head"):
        other_connection.execute(sql, before[2])
    assert rows(other_connection) == before


def test_the_next_row_is_accepted_from_anyone(other_connection: sqlite3.Connection) -> None:
    insert(other_connection, following(rows(other_connection)[-1]))
    assert len(rows(other_connection)) == 7


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"stream": "notastream"}, "ck_event_stream"),
        ({"type": "lower"}, "ck_event_type"),
        ({"schema_version": 0}, "ck_event_schema_version"),
        ({"recorded_at": "yesterday"}, "ck_event_recorded_at"),
        ({"actor": "ada"}, "ck_event_actor"),
        ({"correlation_id": ""}, "ck_event_correlation_id"),
        ({"causation_id": ""}, "ck_event_causation_id"),
        ({"payload": "é" * 8193}, "ck_event_payload"),
        ({"payload_sha256": b"short"}, "ck_event_payload_sha256"),
        ({"event_hash": b""}, "ck_event_event_hash"),
        ({"event_id": "x"}, "ck_event_event_id"),
        ({"payload": b"{}"}, "cannot store BLOB value in TEXT column"),
        ({"actor": None}, "NOT NULL"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_every_column_has_its_form(fault: dict[str, object], says: str, other_connection: sqlite3.Connection) -> None:
    row = following(rows(other_connection)[-1])._replace(**fault)
    with pytest.raises(sqlite3.IntegrityError, match=says):
        insert(other_connection, row)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("UPDATE ledger_meta SET origin = 'x'", "no UPDATE"),
        ("DELETE FROM ledger_meta", "no DELETE"),
        ("INSERT INTO ledger_meta SELECT * FROM ledger_meta", "has its row"),
        (
            "REPLACE INTO ledger_meta SELECT one, 'x', origin, format, genesis_hash FROM ledger_meta",
            "has its row",
        ),
        (
            "INSERT INTO ledger_meta SELECT 2, 'x', origin, format, genesis_hash FROM ledger_meta",
            "has its row",
        ),
    ],
)
def test_the_ledgers_own_row_stands(sql: str, says: str, other_connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=says):
        other_connection.execute(sql)
