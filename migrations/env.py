"""Connects alembic to the ledger, only through a connection that `forge.ledger.schema` passes to it.

The ledger's tables are hidden from autogenerate. A batch operation would rebuild `event` and drop its triggers
silently. So every change to these tables is SQL written by hand.
"""

from alembic import context

LEDGER_TABLES = frozenset({"event", "ledger_meta", "tree_node", "foreign_event", "alembic_version"})


def include_object(item: object, name: str | None, kind: str, _reflected: bool, _compare_to: object) -> bool:
    """Hide the ledger's tables, with their columns, indexes and constraints, from autogenerate."""
    table = name if kind == "table" else getattr(getattr(item, "table", None), "name", None)
    return table not in LEDGER_TABLES


def run() -> None:
    """Run the migrations on the connection given in `config.attributes`."""
    connection = context.config.attributes.get("connection")
    if connection is None:
        raise RuntimeError(
            "no connection: the ledger's migrations are run by forge.ledger.schema.migrate, "
            "not by the alembic command"
        )
    context.configure(connection=connection, target_metadata=None, include_object=include_object)
    with context.begin_transaction():
        context.run_migrations()


run()
