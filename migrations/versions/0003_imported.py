"""Events of other ledgers: `foreign_event`, rows unchanged, append-only by triggers.

They are imported evidence and never part of this ledger's own chain. Only the `LedgerImported` event, appended in the
same transaction, refers to them.
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

FOREIGN_EVENT = """CREATE TABLE foreign_event (
  ledger_id TEXT NOT NULL CONSTRAINT ck_foreign_event_ledger_id CHECK (length(ledger_id) BETWEEN 1 AND 100),
  seq INTEGER NOT NULL CONSTRAINT ck_foreign_event_seq CHECK (seq >= 1),
  event_id TEXT NOT NULL,
  stream TEXT NOT NULL,
  stream_version INTEGER NOT NULL,
  type TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  recorded_at TEXT NOT NULL,
  actor TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  causation_id TEXT,
  idempotency_key TEXT,
  payload TEXT NOT NULL
    CONSTRAINT ck_foreign_event_payload CHECK (length(CAST(payload AS BLOB)) BETWEEN 2 AND 16384),
  payload_sha256 BLOB NOT NULL CONSTRAINT ck_foreign_event_payload_sha256 CHECK (length(payload_sha256) = 32),
  prev_hash BLOB NOT NULL CONSTRAINT ck_foreign_event_prev_hash CHECK (length(prev_hash) = 32),
  event_hash BLOB NOT NULL CONSTRAINT ck_foreign_event_event_hash CHECK (length(event_hash) = 32),
  CONSTRAINT pk_foreign_event PRIMARY KEY (ledger_id, seq)
) STRICT"""

INDEXES = ("CREATE INDEX ix_foreign_event_ledger_id_type_seq ON foreign_event (ledger_id, type, seq)",)

TRIGGERS = (
    """CREATE TRIGGER foreign_event_refuses_update BEFORE UPDATE ON foreign_event
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: no UPDATE of foreign_event');
END""",
    """CREATE TRIGGER foreign_event_refuses_delete BEFORE DELETE ON foreign_event
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: no DELETE from foreign_event');
END""",
    """CREATE TRIGGER foreign_event_accepts_only_the_next BEFORE INSERT ON foreign_event
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: seq must be the next of its ledger')
    WHERE NEW.seq IS NOT
      (SELECT coalesce(max(seq), 0) + 1 FROM foreign_event WHERE ledger_id = NEW.ledger_id);
  SELECT RAISE(ABORT, 'the ledger is append-only: prev_hash must be the hash of the event before')
    WHERE NEW.seq > 1 AND NEW.prev_hash IS NOT
      (SELECT event_hash FROM foreign_event WHERE ledger_id = NEW.ledger_id AND seq = NEW.seq - 1);
  SELECT RAISE(ABORT, 'the ledger is append-only: its own events are not foreign')
    WHERE NEW.ledger_id IS (SELECT ledger_id FROM ledger_meta);
END""",
)

IDENTITY = ("PRAGMA user_version = 3",)


def upgrade() -> None:
    """Run the statements in order."""
    for statement in (FOREIGN_EVENT, *INDEXES, *TRIGGERS, *IDENTITY):
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    """Refuse, because history can't be undone."""
    raise RuntimeError("the ledger's migrations go forward only: restore a backup instead")
