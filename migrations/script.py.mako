"""${message}.

Revision ${up_revision}, after ${down_revision | comma,n}. SQL by hand; forward only.
"""

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None

STATEMENTS: tuple[str, ...] = ()


def upgrade() -> None:
    """Run the statements in order, as they stand."""
    for statement in STATEMENTS:
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    """Refuse: history isn't undone."""
    raise RuntimeError("the ledger's migrations go forward only: restore a backup instead")
