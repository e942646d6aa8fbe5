"""The ledger: `ledger_meta` and `event`, append-only by triggers.

The SQL is written by hand, so `sqlite_master` holds exactly this text. `forge.ledger.schema` compares its fingerprint
each time it opens a ledger. Three rules are easy to forget:

- UPDATE and DELETE triggers alone aren't enough. `INSERT OR REPLACE` deletes a row without firing them, unless
  `recursive_triggers` is on. So the BEFORE INSERT trigger refuses every row but the next one.
- `length()` of a TEXT counts characters. A payload's limit is in bytes, so it is cast to BLOB.
- No `json_valid()` in a CHECK: SQLite calls it unsafe under `trusted_schema=OFF`.
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

LEDGER_META = """CREATE TABLE ledger_meta (
  one INTEGER NOT NULL PRIMARY KEY CONSTRAINT ck_ledger_meta_one CHECK (one = 1),
  ledger_id TEXT NOT NULL CONSTRAINT ck_ledger_meta_ledger_id CHECK (length(ledger_id) BETWEEN 1 AND 100),
  origin TEXT NOT NULL CONSTRAINT ck_ledger_meta_origin CHECK (length(origin) BETWEEN 1 AND 200),
  format TEXT NOT NULL CONSTRAINT ck_ledger_meta_format CHECK (format = 'forge.ledger.v1'),
  genesis_hash BLOB NOT NULL CONSTRAINT ck_ledger_meta_genesis_hash CHECK (length(genesis_hash) = 32)
) STRICT"""

EVENT = """CREATE TABLE event (
  seq INTEGER NOT NULL PRIMARY KEY CONSTRAINT ck_event_seq CHECK (seq >= 1),
  event_id TEXT NOT NULL
    CONSTRAINT uq_event_event_id UNIQUE
    CONSTRAINT ck_event_event_id CHECK (event_id GLOB '????????-????-7???-????-????????????'),
  stream TEXT NOT NULL
    CONSTRAINT ck_event_stream CHECK (stream GLOB '[a-z]*:?*' AND length(stream) <= 300),
  stream_version INTEGER NOT NULL CONSTRAINT ck_event_stream_version CHECK (stream_version >= 1),
  type TEXT NOT NULL CONSTRAINT ck_event_type CHECK (type GLOB '[A-Z]*' AND length(type) <= 80),
  schema_version INTEGER NOT NULL CONSTRAINT ck_event_schema_version CHECK (schema_version >= 1),
  recorded_at TEXT NOT NULL
    CONSTRAINT ck_event_recorded_at CHECK (recorded_at GLOB '????-??-??T??:??:??.??????Z'),
  actor TEXT NOT NULL CONSTRAINT ck_event_actor CHECK (actor GLOB '[a-z]*:?*' AND length(actor) <= 200),
  correlation_id TEXT NOT NULL
    CONSTRAINT ck_event_correlation_id CHECK (length(correlation_id) BETWEEN 1 AND 200),
  causation_id TEXT
    CONSTRAINT ck_event_causation_id CHECK (causation_id IS NULL OR length(causation_id) BETWEEN 1 AND 200),
  idempotency_key TEXT
    CONSTRAINT uq_event_idempotency_key UNIQUE
    CONSTRAINT ck_event_idempotency_key
      CHECK (idempotency_key IS NULL OR length(idempotency_key) BETWEEN 3 AND 320),
  payload TEXT NOT NULL
    CONSTRAINT ck_event_payload CHECK (length(CAST(payload AS BLOB)) BETWEEN 2 AND 16384),
  payload_sha256 BLOB NOT NULL CONSTRAINT ck_event_payload_sha256 CHECK (length(payload_sha256) = 32),
  prev_hash BLOB NOT NULL CONSTRAINT ck_event_prev_hash CHECK (length(prev_hash) = 32),
  event_hash BLOB NOT NULL CONSTRAINT ck_event_event_hash CHECK (length(event_hash) = 32),
  CONSTRAINT uq_event_stream_stream_version UNIQUE (stream, stream_version)
) STRICT"""

INDEXES = (
    "CREATE INDEX ix_event_type_seq ON event (type, seq)",
    "CREATE INDEX ix_event_correlation_id_seq ON event (correlation_id, seq)",
)

EVENT_TRIGGERS = (
    """CREATE TRIGGER event_refuses_update BEFORE UPDATE ON event
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: no UPDATE of event');
END""",
    """CREATE TRIGGER event_refuses_delete BEFORE DELETE ON event
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: no DELETE from event');
END""",
    """CREATE TRIGGER event_accepts_only_the_next BEFORE INSERT ON event
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: seq must be head + 1')
    WHERE NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM event);
  SELECT RAISE(ABORT, 'the ledger is append-only: prev_hash must be the hash of the head')
    WHERE NEW.prev_hash IS NOT coalesce(
      (SELECT event_hash FROM event WHERE seq = NEW.seq - 1),
      (SELECT genesis_hash FROM ledger_meta));
  SELECT RAISE(ABORT, 'the ledger is append-only: stream_version must be the next of its stream')
    WHERE NEW.stream_version IS NOT
      (SELECT coalesce(max(stream_version), 0) + 1 FROM event WHERE stream = NEW.stream);
  SELECT RAISE(ABORT, 'the ledger is append-only: event_id was used before')
    WHERE EXISTS (SELECT 1 FROM event WHERE event_id = NEW.event_id);
  SELECT RAISE(ABORT, 'the ledger is append-only: idempotency_key was used before')
    WHERE NEW.idempotency_key IS NOT NULL
      AND EXISTS (SELECT 1 FROM event WHERE idempotency_key = NEW.idempotency_key);
END""",
)

META_TRIGGERS = (
    """CREATE TRIGGER ledger_meta_refuses_update BEFORE UPDATE ON ledger_meta
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: no UPDATE of ledger_meta');
END""",
    """CREATE TRIGGER ledger_meta_refuses_delete BEFORE DELETE ON ledger_meta
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: no DELETE from ledger_meta');
END""",
    """CREATE TRIGGER ledger_meta_refuses_a_second_row BEFORE INSERT ON ledger_meta
WHEN EXISTS (SELECT 1 FROM ledger_meta)
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: ledger_meta has its row');
END""",
)

IDENTITY = (
    "PRAGMA application_id = 0x464F5247",  # "FORG"
    "PRAGMA user_version = 1",
)


def upgrade() -> None:
    """Run the statements in order."""
    statements = (LEDGER_META, EVENT, *INDEXES, *EVENT_TRIGGERS, *META_TRIGGERS, *IDENTITY)
    for statement in statements:
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    """Refuse, because history can't be undone."""
    raise RuntimeError("the ledger's migrations go forward only: restore a backup instead")
