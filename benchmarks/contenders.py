"""Ways to record events, each durable after every call: the driver alone, Forge, an ORM session, another library.

All write the same facts to files of their own on the same disk, under WAL with `synchronous=FULL`. The driver's
INSERT gets its values ready-made; Forge starts from plain data, as a command does, and validates, chains, guards.
"""

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import UUID

import orjson

from forge.events import CandidateRejected
from forge.ledger.batch import Batch
from forge.ledger.ids import uuid7
from forge.ledger.store import Ledger

STREAMS = 5_000
BATCH = 100
AGGREGATES = 500
T = TypeVar("T")
FACT = {
    "run_id": "20260301T120000_rmsnorm_cpu_0a1b2c",
    "task_id": "cpp_rmsnorm_cpu_fp32_b16_h4096_4e7c4662",
    "stage": "verify",
    "reason": {"code": "INCORRECT_NUMERICAL", "message": "numerics: 3.2 x the bound at row 7 of shape 16 x 4096"},
    "gates": [
        {"name": "interface", "verdict": "passed", "observed": "one entry point", "threshold": "one entry point"},
        {"name": "determinism", "verdict": "passed", "observed": "8 equal outputs", "threshold": "8 equal outputs"},
        {"name": "numerics", "verdict": "failed", "observed": "3.2 x the bound", "threshold": "at most the bound"},
    ],
}
CANDIDATES = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(STREAMS)]
COLUMNS = (
    "seq INTEGER PRIMARY KEY, event_id TEXT, stream TEXT, stream_version INTEGER, type TEXT, schema_version INTEGER, "
    "recorded_at TEXT, actor TEXT, correlation_id TEXT, causation_id TEXT, idempotency_key TEXT, payload TEXT, "
    "payload_sha256 BLOB, prev_hash BLOB, event_hash BLOB"
)
NAMES = tuple(column.split()[0] for column in COLUMNS.split(", "))
INSERT = f"INSERT INTO event VALUES ({', '.join('?' * len(NAMES))})"


def new_id() -> str:
    return uuid7(time.time_ns() // 10**6, os.urandom(10))


def fact(number: int) -> dict[str, Any]:
    """What a phase has to say, as plain data."""
    return FACT | {"candidate": CANDIDATES[number % STREAMS]}


def row(number: int) -> tuple[Any, ...]:
    """Every value of a stored row, with digests of the right length."""
    payload = orjson.dumps(fact(number), option=orjson.OPT_SORT_KEYS).decode()
    digest = hashlib.sha256(payload.encode()).digest()
    head = (number + 1, new_id(), f"candidate:{CANDIDATES[number % STREAMS]}", number // STREAMS + 1)
    said = ("CandidateRejected", 2, "2026-03-01T12:00:00.000000Z", "ci:bench", "bench", None, f"b:{number}#0")
    return (*head, *said, payload, digest, digest, digest)


def batch(number: int) -> Batch:
    """One command's events, validated from plain data."""
    event = CandidateRejected.model_validate(fact(number))
    return Batch(events=[event], actor="ci:bench", correlation_id="bench", idempotency_key=f"b:{number}")


def create(path: Path) -> Ledger:
    return Ledger.create(
        path, ledger_id=path.stem, origin="bench", forge_version="0", now=lambda: datetime.now(UTC), new_id=new_id
    )


class Contender(Protocol):
    """One way to record events."""

    def ready(self, first: int, count: int) -> None:
        """Make what the next call is given; not timed."""

    def single(self) -> None:
        """Record it, each event durable before the next."""

    def many(self) -> None:
        """Record it, a hundred at a time."""


def hundreds(given: list[T]) -> Iterator[list[T]]:
    return (given[start : start + BATCH] for start in range(0, len(given), BATCH))


class Driver:
    """sqlite3's INSERT into a bare table."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(f"CREATE TABLE event ({COLUMNS})")

    def ready(self, first: int, count: int) -> None:
        self._rows = [row(number) for number in range(first, first + count)]

    def single(self) -> None:
        for values in self._rows:
            self._connection.execute(INSERT, values)

    def many(self) -> None:
        for rows in hundreds(self._rows):
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(INSERT, rows)
            self._connection.execute("COMMIT")


class Forge:
    """The ledger, with everything on."""

    def __init__(self, path: Path) -> None:
        self.ledger = create(path)

    def ready(self, first: int, count: int) -> None:
        self._numbers = list(range(first, first + count))

    def single(self) -> None:
        for number in self._numbers:
            self.ledger.append_many([batch(number)])

    def many(self) -> None:
        for numbers in hundreds(self._numbers):
            self.ledger.append_many([batch(number) for number in numbers])


def session(path: Path) -> Contender:
    """SQLModel, one object a row: a session that adds and commits."""
    from sqlalchemy import event
    from sqlmodel import Field, Session, SQLModel, create_engine

    class Row(SQLModel, table=True):
        __tablename__ = "event"
        seq: int = Field(primary_key=True)
        event_id: str
        stream: str
        stream_version: int
        type: str
        schema_version: int
        recorded_at: str
        actor: str
        correlation_id: str
        causation_id: str | None = None
        idempotency_key: str | None = None
        payload: str
        payload_sha256: bytes
        prev_hash: bytes
        event_hash: bytes

    engine = create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def durable(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    SQLModel.metadata.create_all(engine, tables=[SQLModel.metadata.tables[Row.__tablename__]])

    class Orm:
        def ready(self, first: int, count: int) -> None:
            self._values = [dict(zip(NAMES, row(number), strict=True)) for number in range(first, first + count)]

        def single(self) -> None:
            for values in self._values:
                with Session(engine) as opened:
                    opened.add(Row(**values))
                    opened.commit()

        def many(self) -> None:
            for found in hundreds(self._values):
                with Session(engine) as opened:
                    opened.add_all([Row(**values) for values in found])
                    opened.commit()

    return Orm()


def ruled_session(path: Path) -> Contender:
    """The ledger's own rules by way of sessions: the same file, checks, chain and queries, one object a row."""
    from sqlalchemy import event
    from sqlmodel import Session, col, create_engine, func, select

    from forge.ledger.batch import prepare
    from forge.ledger.chain import StoredRow, sealed
    from forge.ledger.connection import configure
    from forge.ledger.table import EventRow

    create(path).close()
    engine = create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def configured(connection: sqlite3.Connection, _: object) -> None:
        configure(connection, path, read_only=False)

    def add(opened: Session, number: int) -> None:
        prepared = prepare(batch(number))
        (one,), key = prepared.events, f"{prepared.idempotency_key}#0"
        head = opened.exec(select(EventRow).order_by(col(EventRow.seq).desc()).limit(1)).one()
        versions = select(func.max(EventRow.stream_version)).where(EventRow.stream == one.stream)
        version = (opened.exec(versions).one() or 0) + 1
        assert opened.exec(select(EventRow.seq).where(EventRow.idempotency_key == key)).first() is None
        said = f"{datetime.now(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
        place = (head.seq + 1, new_id(), one.stream, version, one.type, one.schema_version, said, prepared.actor)
        about = (prepared.correlation_id, prepared.causation_id, key, one.payload, one.payload_sha256)
        made = sealed(StoredRow(*place, *about, head.event_hash, b""))
        opened.add(EventRow(**made._asdict()))
        opened.flush()

    class Orm:
        def ready(self, first: int, count: int) -> None:
            self._numbers = list(range(first, first + count))

        def single(self) -> None:
            for number in self._numbers:
                with Session(engine) as opened:
                    add(opened, number)
                    opened.commit()

        def many(self) -> None:
            for numbers in hundreds(self._numbers):
                with Session(engine) as opened:
                    for number in numbers:
                        add(opened, number)
                    opened.commit()

    return Orm()


def library(path: Path) -> Contender | None:
    """`eventsourcing` (pip install eventsourcing), if it is here: aggregates are loaded, changed and saved."""
    try:
        from eventsourcing.application import Application
        from eventsourcing.domain import Aggregate, event
    except ImportError:
        return None

    class Judged(Aggregate):
        @event("Created")
        def __init__(self) -> None:
            self.last: dict[str, Any] = {}

        @event("Rejected")
        def reject(self, fact: dict[str, Any]) -> None:
            self.last = fact

    environment = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
    return Library(Application[UUID](env=environment), Judged)


class Library:
    """Another library's application; its aggregates stay short, so that loading one stays cheap."""

    # Any: the library may be absent, and has types of its own
    def __init__(self, application: Any, kind: Any) -> None:
        self._application = application
        aggregates = [kind() for _ in range(AGGREGATES)]
        application.save(*aggregates)
        self._ids = [aggregate.id for aggregate in aggregates]

    def ready(self, first: int, count: int) -> None:
        self._facts = [(self._ids[number % AGGREGATES], fact(number)) for number in range(first, first + count)]

    def single(self) -> None:
        for aggregate_id, said in self._facts:
            self._application.save(self._rejected(aggregate_id, said))

    def many(self) -> None:
        for facts in hundreds(self._facts):
            self._application.save(*(self._rejected(aggregate_id, said) for aggregate_id, said in facts))

    def _rejected(self, aggregate_id: UUID, said: dict[str, Any]) -> object:
        aggregate = self._application.repository.get(aggregate_id)
        aggregate.reject(said)
        return aggregate
