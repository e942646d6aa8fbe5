"""What the database must look like, and how a new one gets that way.

`sqlite_master` is compared by its digest at every open: a trigger that is gone, or a table that was rebuilt,
stops the ledger before a row is read or written.
"""

import hashlib
import sqlite3
from pathlib import Path

from forge.errors import EnvironmentUnfit, LedgerCorrupt

APPLICATION_ID = 0x464F5247
"""`FORG`, in the file's header: what `file` and SQLite itself show."""
USER_VERSION = 1
"""The format's number; a newer Forge raises it."""

SCHEMA_OBJECTS = frozenset(
    {
        "ledger_meta",
        "event",
        "sqlite_autoindex_event_1",
        "sqlite_autoindex_event_2",
        "sqlite_autoindex_event_3",
        "ix_event_type_seq",
        "ix_event_correlation_id_seq",
        "event_refuses_update",
        "event_refuses_delete",
        "event_accepts_only_the_next",
        "ledger_meta_refuses_update",
        "ledger_meta_refuses_delete",
        "ledger_meta_refuses_a_second_row",
    }
)
SCHEMA_SHA256 = "713cbd4a254d368fd95c17765ceb98c430ffd2642a7586182801be61bf271c45"
"""The fingerprint after the last migration."""

_FOREIGN_TABLES = ("alembic_version", "sqlite_stat", "_litestream_")
"""Tables that tools keep in the file; they and their indexes say nothing about history."""


def check_identity(connection: sqlite3.Connection, path: Path) -> None:
    """Raise LedgerCorrupt unless the file's header says it is a ledger of a format this Forge reads."""
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    if application_id != APPLICATION_ID:
        raise LedgerCorrupt(
            f"{path}: application id is {application_id:#x}, expected {APPLICATION_ID:#x}: "
            "this SQLite database isn't a ledger; give the workspace's own kernel_registry.db"
        )
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != USER_VERSION:
        raise LedgerCorrupt(f"{path}: ledger format {version}, this Forge reads {USER_VERSION}: upgrade Forge")


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise LedgerCorrupt unless tables, indexes and triggers are exactly those of the migrations."""
    found = schema_rows(connection)
    if fingerprint(found) == SCHEMA_SHA256:
        return
    names = {name for _, name, _, _ in found}
    missing = ", ".join(sorted(SCHEMA_OBJECTS - names)) or "nothing"
    unexpected = ", ".join(sorted(names - SCHEMA_OBJECTS)) or "nothing"
    raise LedgerCorrupt(
        f"{path}: the schema isn't the one Forge made (missing: {missing}; not ours: {unexpected}; or a "
        "definition was changed): its rules can't be relied on",
        hint="forge ledger verify",
    )


SchemaRow = tuple[str, str, str, str]


def schema_rows(connection: sqlite3.Connection) -> list[SchemaRow]:
    """type, name, table and SQL of all that is ours in `sqlite_master`, in a fixed order."""
    rows = connection.execute(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY type, name"
    ).fetchall()
    return [
        (kind, name, table, sql)
        for kind, name, table, sql in rows
        if not (kind in ("table", "index") and table.startswith(_FOREIGN_TABLES))
    ]


def fingerprint(rows: list[SchemaRow]) -> str:
    """SHA-256 over the rows, each field ended by a zero byte."""
    digest = hashlib.sha256()
    for row in rows:
        for field in row:
            digest.update(field.encode() + b"\x00")
    return digest.hexdigest()


def migrations_folder() -> Path:
    """Beside the package in a source checkout, inside it when installed."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise EnvironmentUnfit(f"no migrations beside or inside {package}: install Forge again")


def migrate(path: Path) -> None:
    """Bring the database at `path` to the last migration; made for a new file, before anyone else sees it."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    from forge.ledger.connection import configure, connect

    def driver_connection() -> sqlite3.Connection:
        connection = connect(path, read_only=False, create=True)
        configure(connection, path, read_only=False)
        return connection

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    engine = create_engine("sqlite://", creator=driver_connection, poolclass=NullPool)
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        connection.commit()
