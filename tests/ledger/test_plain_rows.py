"""Rows that are read as plain documents are checked as those that are read as events."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from forge.domain.digest import sha256
from forge.errors import LedgerCorrupt
from forge.events import parse_event
from forge.events.kinds import KINDS
from forge.ledger.chain import StoredRow, sealed
from forge.ledger.plain_rows import PlainEvent, plain_event, plain_events
from forge.ledger.statements import COLUMNS

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "events" / "golden"
SHIPPED = ROOT / "kernel_registry.db"


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_type_names_the_same_stream_as_a_document_and_as_a_model(name: str) -> None:
    kind = KINDS[name]
    stored = (GOLDEN / f"{name}.v{kind.version}.json").read_bytes()
    event = parse_event(name, kind.version, stored)
    assert kind.stream.format_map(event.model_dump(mode="json")) == event.stream()


def shipped_row(name: str, version: int | None = None) -> StoredRow:
    with closing(sqlite3.connect(f"file:{SHIPPED}?mode=ro&immutable=1", uri=True)) as ledger:
        chosen = "type = ?1 AND schema_version = coalesce(?2, schema_version)"
        query = f"SELECT {COLUMNS} FROM event WHERE {chosen} ORDER BY seq DESC LIMIT 1"
        found = ledger.execute(query, (name, version))
        return StoredRow._make(found.fetchone())


def read(row: StoredRow) -> PlainEvent:
    """Read one row out of a table of its own."""
    with closing(sqlite3.connect(":memory:")) as ledger:
        ledger.execute(f"CREATE TABLE event ({COLUMNS})")
        ledger.execute(f"INSERT INTO event VALUES ({', '.join('?' * len(row))})", row)
        one = plain_event(ledger, Path("a-ledger"), row.seq)
        assert plain_events(ledger, Path("a-ledger"), [row.type]) == [one]
        return one


def test_an_event_is_read_as_its_document() -> None:
    row = shipped_row("KernelPromoted")
    found = read(row)
    assert parse_event(row.type, row.schema_version, row.payload).model_dump(mode="json") == found.event
    assert (found.seq, found.actor, found.event_hash) == (row.seq, row.actor, row.event_hash.hex())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row._replace(payload=row.payload.replace("a", "b")), "isn't the one"),
        (lambda row: row._replace(actor="cli:eve"), "isn't the one"),
        (lambda row: sealed(row._replace(actor="agent:eve")), "may not write KernelPromoted"),
        (lambda row: sealed(row._replace(actor="eve")), "unknown actor"),
        (lambda row: sealed(row._replace(stream="kernel:another")), "names another stream"),
    ],
)
def test_an_unsound_row_is_refused(change: Callable[[StoredRow], StoredRow], said: str) -> None:
    with pytest.raises(LedgerCorrupt, match=said):
        read(change(shipped_row("KernelPromoted")))


@pytest.mark.parametrize(("name", "version"), [("PlanAccepted", 1), ("PromptRendered", 1), ("CandidateRejected", 2)])
def test_an_older_version_is_read_as_the_current_one(name: str, version: int) -> None:
    row = shipped_row(name, version)
    found, model = read(row).event, parse_event(name, version, row.payload).model_dump(mode="json")
    assert model | found == model


def test_a_newer_version_is_left_to_the_whole_command() -> None:
    row = shipped_row("TaskCreated")
    with pytest.raises(KeyError, match="TaskCreated v3"):
        read(sealed(row._replace(schema_version=3)))


def test_a_missing_event_is_refused() -> None:
    missing = pytest.raises(LedgerCorrupt, match="is missing")
    with closing(sqlite3.connect(f"file:{SHIPPED}?mode=ro&immutable=1", uri=True)) as ledger, missing:
        plain_event(ledger, SHIPPED, 10**9)


def test_every_row_of_these_types_that_ships_is_sound() -> None:
    with closing(sqlite3.connect(f"file:{SHIPPED}?mode=ro&immutable=1", uri=True)) as ledger:
        found = plain_events(ledger, SHIPPED, sorted(KINDS))
    assert len(found) > 500
    assert all(sha256(b"") != one.event_hash for one in found)
