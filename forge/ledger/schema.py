"""Defines what the database must look like, and makes a new one.

`sqlite_master` is compared by its digest at every open. If a trigger is missing or a table was rebuilt, the ledger
isn't opened, and no row is read or written.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.errors import EnvironmentUnfit, LedgerCorrupt

APPLICATION_ID = 0x464F5247
"""Id in the file's header: `FORG`, as `file` and SQLite itself show it."""
USER_VERSION = 3
"""Number of the format; a newer Forge raises it. Format 1 had no stored Merkle tree, format 2 no foreign events."""

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
        "tree_node",
        "tree_node_refuses_update",
        "tree_node_refuses_delete",
        "tree_node_accepts_only_the_next",
        "foreign_event",
        "sqlite_autoindex_foreign_event_1",
        "ix_foreign_event_ledger_id_type_seq",
        "foreign_event_refuses_update",
        "foreign_event_refuses_delete",
        "foreign_event_accepts_only_the_next",
    }
)
"""Names of all tables, indexes and triggers of a ledger."""
SCHEMA_SHA256 = "c568aa206b45223470e61b82a15491176b961c7ea48395c5be1226c49dc593d7"
"""Fingerprint of the schema after the last migration."""
OLDER_SCHEMAS = {
    1: "713cbd4a254d368fd95c17765ceb98c430ffd2642a7586182801be61bf271c45",
    2: "7acf4860416768494445484b5fb826bf5ce8f59472951d678d483c7e6cb2e96c",
}
"""Format -> the fingerprint of its schema, which is checked before such a ledger is brought up to date."""

_TOOL_TABLES = ("alembic_version", "sqlite_stat", "_litestream_")
"""Names of the tables that tools keep in the file. These tables and their indexes say nothing about history."""


def check_identity(connection: sqlite3.Connection, path: Path) -> int:
    """Return the format's number; raise LedgerCorrupt unless the file's header names a known format."""
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    if application_id != APPLICATION_ID:
        raise LedgerCorrupt(
            f"{path}: application id is {application_id:#x}, expected {APPLICATION_ID:#x}: "
            "this SQLite database isn't a ledger; give the workspace's own kernel_registry.db"
        )
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != USER_VERSION and version not in OLDER_SCHEMAS:
        raise LedgerCorrupt(f"{path}: ledger format {version}, this Forge reads 1 to {USER_VERSION}: upgrade Forge")
    return int(version)


def check_schema(connection: sqlite3.Connection, path: Path, *, version: int = USER_VERSION) -> None:
    """Raise LedgerCorrupt unless tables, indexes and triggers are exactly those of the migrations up to `version`."""
    found = schema_rows(connection)
    if fingerprint(found) == OLDER_SCHEMAS.get(version, SCHEMA_SHA256):
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
_IS_TEXT = (
    "typeof(type) = 'text' AND typeof(name) = 'text' AND typeof(tbl_name) = 'text' "
    "AND typeof(sql) IN ('text', 'null') AND instr(type || name || tbl_name || coalesce(sql, ''), char(0)) = 0"
)
"""SQL of whether a row of `sqlite_master` is text. SQLite makes an object of bytes too, and reads up to a zero."""


def schema_rows(connection: sqlite3.Connection) -> list[SchemaRow]:
    """Return type, name, table and SQL of each object of Forge's in `sqlite_master`, in a fixed order.

    Rows that aren't text are counted in one row more. They come from a damaged page, or hide an object: SQLite reads
    bytes as text there.
    """
    rows = connection.execute(
        f"SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master WHERE {_IS_TEXT} ORDER BY type, name"  # noqa: S608
    ).fetchall()
    (others,) = connection.execute(f"SELECT count(*) FROM sqlite_master WHERE NOT ({_IS_TEXT})").fetchone()  # noqa: S608
    rows += [("row", f"{others} without text", "", "")] if others else []
    return [
        (kind, name, table, sql)
        for kind, name, table, sql in rows
        if not (kind in ("table", "index") and table.startswith(_TOOL_TABLES))
    ]


def fingerprint(rows: list[SchemaRow]) -> str:
    """Return the SHA-256 over the rows; a zero byte ends each field."""
    digest = hashlib.sha256()
    for row in rows:
        for field in row:
            digest.update(field.encode() + b"\x00")
    return digest.hexdigest()


def migrations_folder() -> Path:
    """Return the folder of migrations: beside the package in a source checkout, inside it when installed.

    Raises EnvironmentUnfit if it is in neither place.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise EnvironmentUnfit(f"no migrations beside or inside {package}: install Forge again")


def migrate(path: Path, *, then: Callable[[sqlite3.Connection], None] | None = None) -> None:
    """Bring the database at `path` to the last migration and call `then`, in one transaction.

    The caller holds the ledger's lock, or is the only process that knows a new file.
    """
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    from forge.ledger.connection import configure, connect, write_ahead

    opened: list[sqlite3.Connection] = []

    def driver_connection() -> sqlite3.Connection:
        connection = connect(path, read_only=False, create=True)
        configure(connection, path, read_only=False)
        write_ahead(connection, path)
        opened.append(connection)
        return connection

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    engine = create_engine("sqlite://", creator=driver_connection, poolclass=NullPool)
    with _driver_errors(), engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        if then is not None:
            then(opened[-1])
        connection.commit()


@contextmanager
def _driver_errors() -> Iterator[None]:
    """Raise the driver's own error instead of alembic's, so that a full disk is reported as a full disk."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise error.orig from error
        raise
