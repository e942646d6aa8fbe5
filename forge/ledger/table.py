"""Declares the ledger's tables in SQLModel, for readers and for the tests.

The migration creates the tables, and `statements.py` holds the statements that run. Tests compare both with these
declarations. No session uses the ledger, and no running code imports this module.
"""

from sqlalchemy import CheckConstraint, Index, Integer, LargeBinary, Text, UniqueConstraint
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel


class LedgerTables(SQLModel, registry=registry()):
    """Base of the ledger's tables, with metadata of their own."""


class LedgerMetaRow(LedgerTables, table=True):
    """The one row that identifies this ledger."""

    __tablename__ = "ledger_meta"

    one: int = Field(primary_key=True, sa_type=Integer, sa_column_kwargs={"autoincrement": False})
    ledger_id: str = Field(sa_type=Text)
    origin: str = Field(sa_type=Text)
    format: str = Field(sa_type=Text)
    genesis_hash: bytes = Field(sa_type=LargeBinary)


class _StoredColumns(LedgerTables):
    """Columns of a stored event, of this ledger or of another one; docs/ledger.md explains each."""

    seq: int = Field(primary_key=True, sa_type=Integer, sa_column_kwargs={"autoincrement": False})
    """Place in history: without gaps from 1, assigned by the writer under the lock."""
    event_id: str = Field(sa_type=Text)
    """UUIDv7."""
    stream: str = Field(sa_type=Text)
    """`<category>:<id>`."""
    stream_version: int = Field(sa_type=Integer)
    """Number within its stream, without gaps from 1."""
    type: str = Field(sa_type=Text)
    schema_version: int = Field(sa_type=Integer)
    recorded_at: str = Field(sa_type=Text)
    """UTC with microseconds, for information only; the order of events is `seq`."""
    actor: str = Field(sa_type=Text)
    correlation_id: str = Field(sa_type=Text)
    causation_id: str | None = Field(default=None, sa_type=Text)
    """The `event_id` of the event that caused this one."""
    idempotency_key: str | None = Field(default=None, sa_type=Text)
    """`<key of the command>#<place in its batch>`."""
    payload: str = Field(sa_type=Text)
    """Canonical JSON, at most 16 KiB."""
    payload_sha256: bytes = Field(sa_type=LargeBinary)
    prev_hash: bytes = Field(sa_type=LargeBinary)
    event_hash: bytes = Field(sa_type=LargeBinary)


class EventRow(_StoredColumns, table=True):
    """One event of this ledger."""

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


class TreeNodeRow(LedgerTables, table=True):
    """The hash of one complete subtree of the Merkle tree over the events' hashes."""

    __tablename__ = "tree_node"

    level: int = Field(primary_key=True, sa_type=Integer, sa_column_kwargs={"autoincrement": False})
    """Height of the subtree in levels of the binary tree: a multiple of 4."""
    place: int = Field(primary_key=True, sa_type=Integer, sa_column_kwargs={"autoincrement": False})
    """Number of the subtree within its level, from 0 at the left, without gaps."""
    hash: bytes = Field(sa_type=LargeBinary)


class _OfALedger(LedgerTables):
    """First column of a table that holds events of several ledgers."""

    ledger_id: str = Field(primary_key=True, sa_type=Text)
    """Id of the ledger that it belongs to."""


class ForeignEventRow(_StoredColumns, _OfALedger, table=True):
    """One event of another ledger, unchanged."""

    __tablename__ = "foreign_event"
    __table_args__ = (Index("ix_foreign_event_ledger_id_type_seq", "ledger_id", "type", "seq"),)


EVENT = LedgerTables.metadata.tables["event"]
TREE_NODE = LedgerTables.metadata.tables["tree_node"]
FOREIGN_EVENT = LedgerTables.metadata.tables["foreign_event"]
LEDGER_META = LedgerTables.metadata.tables["ledger_meta"]
