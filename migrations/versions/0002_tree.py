"""The Merkle tree over the events' hashes: `tree_node`, append-only by triggers.

This migration only makes the table. If a ledger has events, `forge.ledger.schema` fills it in the same transaction.
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TREE_NODE = """CREATE TABLE tree_node (
  level INTEGER NOT NULL
    CONSTRAINT ck_tree_node_level CHECK (level BETWEEN 4 AND 60 AND level % 4 = 0),
  place INTEGER NOT NULL CONSTRAINT ck_tree_node_place CHECK (place >= 0),
  hash BLOB NOT NULL CONSTRAINT ck_tree_node_hash CHECK (length(hash) = 32),
  CONSTRAINT pk_tree_node PRIMARY KEY (level, place)
) STRICT, WITHOUT ROWID"""

TRIGGERS = (
    """CREATE TRIGGER tree_node_refuses_update BEFORE UPDATE ON tree_node
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: no UPDATE of tree_node');
END""",
    """CREATE TRIGGER tree_node_refuses_delete BEFORE DELETE ON tree_node
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: no DELETE from tree_node');
END""",
    """CREATE TRIGGER tree_node_accepts_only_the_next BEFORE INSERT ON tree_node
BEGIN
  SELECT RAISE(ABORT, 'the ledger is append-only: place must be the next of its level')
    WHERE NEW.place IS NOT (SELECT coalesce(max(place), -1) + 1 FROM tree_node WHERE level = NEW.level);
  SELECT RAISE(ABORT, 'the ledger is append-only: the events below a tree_node come first')
    WHERE (NEW.place + 1) << NEW.level > (SELECT coalesce(max(seq), 0) FROM event);
END""",
)

IDENTITY = ("PRAGMA user_version = 2",)


def upgrade() -> None:
    """Run the statements in order."""
    for statement in (TREE_NODE, *TRIGGERS, *IDENTITY):
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    """Refuse, because history can't be undone."""
    raise RuntimeError("the ledger's migrations go forward only: restore a backup instead")
