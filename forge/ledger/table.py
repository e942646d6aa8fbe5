"""The ledger's tables as SQLModel declares them, and the hot paths' statements, compiled from them once.

The migration creates the tables; a test holds the two against each other. No ORM session ever touches them:
statements run on the driver's connection, and a row leaves this package only as an event.
"""

from collections.abc import Mapping
from functools import lru_cache

from sqlalchemy import (
    CheckConstraint,
    ClauseElement,
    Index,
    Integer,
    LargeBinary,
    Text,
    UniqueConstraint,
    bindparam,
    func,
    insert,
    literal_column,
    select,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.orm import registry
from sqlalchemy.sql.compiler import SQLCompiler
from sqlmodel import Field, SQLModel

PAYLOAD_LIMIT_BYTES = 16 * 1024
KEYS_AT_ONCE = 100
"""Keys asked for in one query."""
PAGE_ROWS = 500
"""Rows fetched at a time: a reader holds no transaction open between pages."""


class LedgerTables(SQLModel, registry=registry()):
    """Base of the ledger's tables; their metadata is kept apart from that of any projection."""


class LedgerMetaRow(LedgerTables, table=True):
    """The one row that says which ledger this is."""

    __tablename__ = "ledger_meta"

    one: int = Field(primary_key=True, sa_type=Integer, sa_column_kwargs={"autoincrement": False})
    ledger_id: str = Field(sa_type=Text)
    origin: str = Field(sa_type=Text)
    format: str = Field(sa_type=Text)
    genesis_hash: bytes = Field(sa_type=LargeBinary)


class EventRow(LedgerTables, table=True):
    """One event; docs of each column stand in the design of the ledger."""

    __tablename__ = "event"
    __table_args__ = (
        UniqueConstraint("event_id", name="uq_event_event_id"),
        UniqueConstraint("idempotency_key", name="uq_event_idempotency_key"),
        UniqueConstraint("stream", "stream_version", name="uq_event_stream_stream_version"),
        CheckConstraint("seq >= 1", name="ck_event_seq"),
        CheckConstraint("stream_version >= 1", name="ck_event_stream_version"),
        Index("ix_event_type_seq", "type", "seq"),
        Index("ix_event_correlation_id_seq", "correlation_id", "seq"),
    )

    seq: int = Field(primary_key=True, sa_type=Integer, sa_column_kwargs={"autoincrement": False})
    """The order of history: gapless from 1, given by the writer under the lock."""
    event_id: str = Field(sa_type=Text)
    """UUIDv7."""
    stream: str = Field(sa_type=Text)
    """`<category>:<id>`."""
    stream_version: int = Field(sa_type=Integer)
    """Gapless from 1 within its stream."""
    type: str = Field(sa_type=Text)
    schema_version: int = Field(sa_type=Integer)
    recorded_at: str = Field(sa_type=Text)
    """UTC with microseconds; informative, the order is `seq`."""
    actor: str = Field(sa_type=Text)
    correlation_id: str = Field(sa_type=Text)
    causation_id: str | None = Field(default=None, sa_type=Text)
    """The `event_id` of what caused this."""
    idempotency_key: str | None = Field(default=None, sa_type=Text)
    """`<key of the command>#<place in its batch>`."""
    payload: str = Field(sa_type=Text)
    """Canonical JSON, at most 16 KiB."""
    payload_sha256: bytes = Field(sa_type=LargeBinary)
    prev_hash: bytes = Field(sa_type=LargeBinary)
    event_hash: bytes = Field(sa_type=LargeBinary)


class TreeNodeRow(LedgerTables, table=True):
    """The hash of one complete subtree of the Merkle tree over the events' hashes."""

    __tablename__ = "tree_node"

    level: int = Field(primary_key=True, sa_type=Integer, sa_column_kwargs={"autoincrement": False})
    """Its height: a multiple of 4."""
    place: int = Field(primary_key=True, sa_type=Integer, sa_column_kwargs={"autoincrement": False})
    """Its number from the left, gapless from 0 within its level."""
    hash: bytes = Field(sa_type=LargeBinary)


class ForeignEventRow(LedgerTables, table=True):
    """One event of another ledger, as it stands there; its columns are those of `event`."""

    __tablename__ = "foreign_event"
    __table_args__ = (Index("ix_foreign_event_ledger_id_type_seq", "ledger_id", "type", "seq"),)

    ledger_id: str = Field(primary_key=True, sa_type=Text)
    """The ledger that it stands in."""
    seq: int = Field(primary_key=True, sa_type=Integer, sa_column_kwargs={"autoincrement": False})
    event_id: str = Field(sa_type=Text)
    stream: str = Field(sa_type=Text)
    stream_version: int = Field(sa_type=Integer)
    type: str = Field(sa_type=Text)
    schema_version: int = Field(sa_type=Integer)
    recorded_at: str = Field(sa_type=Text)
    actor: str = Field(sa_type=Text)
    correlation_id: str = Field(sa_type=Text)
    causation_id: str | None = Field(default=None, sa_type=Text)
    idempotency_key: str | None = Field(default=None, sa_type=Text)
    payload: str = Field(sa_type=Text)
    payload_sha256: bytes = Field(sa_type=LargeBinary)
    prev_hash: bytes = Field(sa_type=LargeBinary)
    event_hash: bytes = Field(sa_type=LargeBinary)


EVENT = LedgerTables.metadata.tables["event"]
TREE_NODE = LedgerTables.metadata.tables["tree_node"]
FOREIGN_EVENT = LedgerTables.metadata.tables["foreign_event"]
LEDGER_META = LedgerTables.metadata.tables["ledger_meta"]


class Statement:
    """SQL text for the driver, and the order in which it takes its values."""

    def __init__(self, clause: ClauseElement) -> None:
        compiled = clause.compile(dialect=sqlite.dialect(paramstyle="qmark"))
        assert isinstance(compiled, SQLCompiler)
        self.sql = compiled.string
        self._defaults: dict[str, object] = dict(compiled.params)
        self._order = tuple(compiled.positiontup or ())

    def values(self, given: Mapping[str, object]) -> tuple[object, ...]:
        """The values in the statement's order."""
        merged = self._defaults | dict(given)
        return tuple(merged[name] for name in self._order)


INSERT_EVENT = Statement(insert(EVENT)).sql
"""Takes a `StoredRow` as it is."""
INSERT_META = Statement(insert(LEDGER_META)).sql
"""Takes one, ledger_id, origin, format, genesis_hash."""
SELECT_META = Statement(select(*LEDGER_META.c)).sql
_EARLIER = EVENT.alias("earlier")
_HEAD = select(EVENT.c.seq, EVENT.c.event_hash).where(
    EVENT.c.seq == select(func.max(_EARLIER.c.seq)).scalar_subquery()
)
_STREAM_VERSION = select(func.coalesce(func.max(_EARLIER.c.stream_version), literal_column("0"))).where(
    _EARLIER.c.stream == bindparam("stream")
)
_KEY_SEQ = select(_EARLIER.c.seq).where(_EARLIER.c.idempotency_key == bindparam("idempotency_key"))
SELECT_HEAD = Statement(_HEAD).sql
SELECT_STREAM_VERSION = Statement(_STREAM_VERSION).sql
SELECT_NEXT = Statement(_HEAD.add_columns(_STREAM_VERSION.scalar_subquery(), _KEY_SEQ.scalar_subquery())).sql
"""The head, with the version of a stream and the place of a key: all that one more event needs to know."""
SELECT_BY_KEY = Statement(
    select(EVENT.c.seq, EVENT.c.type, EVENT.c.schema_version, EVENT.c.payload_sha256, EVENT.c.event_hash).where(
        EVENT.c.idempotency_key == bindparam("idempotency_key")
    )
).sql
SELECT_USED_KEYS = Statement(
    select(EVENT.c.idempotency_key).where(
        EVENT.c.idempotency_key.in_([bindparam(f"key{place}") for place in range(KEYS_AT_ONCE)])
    )
).sql
"""Takes KEYS_AT_ONCE keys: those of them under which an event stands."""
SELECT_STREAMS = Statement(
    select(EVENT.c.stream)
    .where(
        EVENT.c.stream >= bindparam("first"),
        EVENT.c.stream < bindparam("beyond"),
        EVENT.c.stream_version == literal_column("1"),
    )
    .order_by(EVENT.c.stream)
).sql
"""Takes where the names begin and where they end; answered from the index alone."""
_OF_TYPE = select(func.max(_EARLIER.c.seq)).where(_EARLIER.c.type == bindparam("type"))
SELECT_NEWEST = Statement(select(*EVENT.c).where(EVENT.c.seq == _OF_TYPE.scalar_subquery())).sql
"""Takes a type: the last row of it."""
INSERT_NODE = Statement(insert(TREE_NODE)).sql
"""Takes level, place, hash."""
SELECT_LEAVES = Statement(
    select(EVENT.c.event_hash)
    .where(EVENT.c.seq > bindparam("first"), EVENT.c.seq <= bindparam("until"))
    .order_by(EVENT.c.seq)
).sql
"""Takes how many leaves come before, and the last one's seq."""
SELECT_NODES = Statement(
    select(TREE_NODE.c.hash)
    .where(
        TREE_NODE.c.level == bindparam("level"),
        TREE_NODE.c.place >= bindparam("first"),
        TREE_NODE.c.place < bindparam("until"),
    )
    .order_by(TREE_NODE.c.place)
).sql
SELECT_NODE_COUNT = Statement(
    select(func.coalesce(func.max(TREE_NODE.c.place), literal_column("-1")) + literal_column("1")).where(
        TREE_NODE.c.level == bindparam("level")
    )
).sql
SELECT_ALL = Statement(select(*EVENT.c).order_by(EVENT.c.seq)).sql
INSERT_FOREIGN = Statement(insert(FOREIGN_EVENT)).sql
"""Takes the other ledger's id, and a `StoredRow` of it."""
SELECT_FOREIGN_HEAD = Statement(
    select(FOREIGN_EVENT.c.seq, FOREIGN_EVENT.c.event_hash)
    .where(FOREIGN_EVENT.c.ledger_id == bindparam("ledger_id"))
    .order_by(FOREIGN_EVENT.c.seq.desc())
    .limit(1)
)
SELECT_FOREIGN = Statement(
    select(*FOREIGN_EVENT.c[1:])
    .where(FOREIGN_EVENT.c.ledger_id == bindparam("ledger_id"))
    .order_by(FOREIGN_EVENT.c.seq)
).sql
SELECT_FOREIGN_OF_TYPE = Statement(
    select(FOREIGN_EVENT.c.seq, FOREIGN_EVENT.c.recorded_at, FOREIGN_EVENT.c.payload)
    .where(FOREIGN_EVENT.c.ledger_id == bindparam("ledger_id"), FOREIGN_EVENT.c.type == bindparam("type"))
    .order_by(FOREIGN_EVENT.c.seq)
).sql
SELECT_FOREIGN_PLACE = Statement(
    select(FOREIGN_EVENT.c.event_hash).where(
        FOREIGN_EVENT.c.ledger_id == bindparam("ledger_id"), FOREIGN_EVENT.c.seq == bindparam("seq")
    )
).sql
SELECT_PLACE = Statement(select(EVENT.c.event_hash).where(EVENT.c.seq == bindparam("seq"))).sql
SELECT_TAIL = Statement(select(*EVENT.c).order_by(EVENT.c.seq.desc()).limit(bindparam("rows")))


@lru_cache(maxsize=64)
def select_page(*, stream: bool, types: int, correlation: bool) -> Statement:
    """Rows in `after < seq <= until`, in order, at most `page`; filtered by what is asked for."""
    query = select(*EVENT.c).where(EVENT.c.seq > bindparam("after"), EVENT.c.seq <= bindparam("until"))
    if stream:
        query = query.where(EVENT.c.stream == bindparam("stream"))
    if types:
        query = query.where(EVENT.c.type.in_([bindparam(f"type{place}") for place in range(types)]))
    if correlation:
        query = query.where(EVENT.c.correlation_id == bindparam("correlation_id"))
    return Statement(query.order_by(EVENT.c.seq).limit(bindparam("page")))
