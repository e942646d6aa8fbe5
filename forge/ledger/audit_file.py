"""The audit's view of the file itself: header, tables, triggers, pages."""

import hashlib
import sqlite3

from forge.ledger.audit_report import Problem

_APPLICATION_ID = 0x464F5247
_TRIGGERS = (
    "event_accepts_only_the_next",
    "event_refuses_delete",
    "event_refuses_update",
    "ledger_meta_refuses_a_second_row",
    "ledger_meta_refuses_delete",
    "ledger_meta_refuses_update",
)
_TREE_TRIGGERS = (
    "tree_node_accepts_only_the_next",
    "tree_node_refuses_delete",
    "tree_node_refuses_update",
)
_FOREIGN_TRIGGERS = (
    "foreign_event_accepts_only_the_next",
    "foreign_event_refuses_delete",
    "foreign_event_refuses_update",
)
_OTHERS_TABLES = (b"alembic_version", b"sqlite_stat", b"_litestream_")
"""Tables that tools keep in the file; they and their indexes say nothing about history."""
_MIGRATIONS = b"alembic_version"
_MIGRATIONS_SCHEMA = [
    (b"index", b"sqlite_autoindex_alembic_version_1", _MIGRATIONS, b""),
    (
        *(b"table", _MIGRATIONS, _MIGRATIONS),
        b"CREATE TABLE alembic_version (\n\tversion_num VARCHAR(32) NOT NULL, \n"
        b"\tCONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)\n)",
    ),
]
"""The migrations' own table, where it is: an edit of it is an edit of the file."""
FORMATS = {
    1: ("713cbd4a254d368fd95c17765ceb98c430ffd2642a7586182801be61bf271c45", _TRIGGERS),
    2: ("7acf4860416768494445484b5fb826bf5ce8f59472951d678d483c7e6cb2e96c", _TRIGGERS + _TREE_TRIGGERS),
    3: (
        "c568aa206b45223470e61b82a15491176b961c7ea48395c5be1226c49dc593d7",
        _TRIGGERS + _TREE_TRIGGERS + _FOREIGN_TRIGGERS,
    ),
}
"""Format -> the digest of its schema, and its triggers. An older ledger is audited as it stands."""


def file_problems(connection: sqlite3.Connection) -> list[Problem]:
    """The file's header, and the tables and triggers that guard the rows."""
    found: list[Problem] = []
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    if application_id != _APPLICATION_ID:
        found.append(Problem(None, "application id", hex(_APPLICATION_ID), hex(application_id)))
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in FORMATS:
        return [*found, Problem(None, "format", f"1 to {max(FORMATS)}", str(version))]
    schema_sha256, expected = FORMATS[version]
    digest = hashlib.sha256()
    triggers, migrations = set(), []
    query = (
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master "
        "WHERE typeof(type) = 'text' AND typeof(name) = 'text' AND typeof(tbl_name) = 'text' "
        "AND typeof(sql) IN ('text', 'null') ORDER BY type, name"
    )
    for kind, name, table, sql in connection.execute(query):
        if kind == b"trigger":
            triggers.add(name.decode())
        elif kind in (b"table", b"index") and table.startswith(_OTHERS_TABLES):
            if table.startswith(_MIGRATIONS):
                migrations.append((kind, name, table, sql))
            continue
        digest.update(b"".join(field + b"\x00" for field in (kind, name, table, sql)))
    found += [Problem(None, f"trigger {name}", "present", "missing") for name in expected if name not in triggers]
    if digest.hexdigest() != schema_sha256 and not found:
        found.append(Problem(None, "schema", schema_sha256, digest.hexdigest()))
    if migrations not in ([], _MIGRATIONS_SCHEMA):
        found.append(Problem(None, "schema of alembic_version", "as the migrations make it", repr(migrations)[:200]))
    return found


def page_problems(connection: sqlite3.Connection) -> list[Problem]:
    """What SQLite itself finds: damaged pages, indexes that disagree with rows, CHECK and UNIQUE."""
    rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
    texts = [row[0].decode() for row in rows]
    return [] if texts == ["ok"] else [Problem(None, "integrity_check", "ok", text) for text in texts]
