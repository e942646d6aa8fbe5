"""Checks the database file itself: header, tables, triggers, pages."""

import hashlib
import sqlite3

from forge.ledger.audit.report import AuditProblem

_APPLICATION_ID = 0x464F5247
"""`FORG`: the id in the header of each ledger file."""
_TRIGGERS = (
    "event_accepts_only_the_next",
    "event_refuses_delete",
    "event_refuses_update",
    "ledger_meta_refuses_a_second_row",
    "ledger_meta_refuses_delete",
    "ledger_meta_refuses_update",
)
"""Names of the triggers of format 1."""
_TREE_TRIGGERS = (
    "tree_node_accepts_only_the_next",
    "tree_node_refuses_delete",
    "tree_node_refuses_update",
)
"""Names of the triggers that format 2 added."""
_FOREIGN_TRIGGERS = (
    "foreign_event_accepts_only_the_next",
    "foreign_event_refuses_delete",
    "foreign_event_refuses_update",
)
"""Names of the triggers that format 3 added."""
_IS_TEXT = (
    "typeof(type) = 'text' AND typeof(name) = 'text' AND typeof(tbl_name) = 'text' "
    "AND typeof(sql) IN ('text', 'null') AND instr(type || name || tbl_name || coalesce(sql, ''), char(0)) = 0"
)
"""SQL of whether a row of `sqlite_master` is text. SQLite makes an object of bytes too, and reads up to a zero."""
_MIGRATIONS_TABLE = b"alembic_version"
_TOOL_TABLES = (_MIGRATIONS_TABLE, b"sqlite_stat", b"_litestream_")
"""Names of the tables that tools keep in the file. These tables and their indexes say nothing about history."""
_TOOL_SCHEMA = {
    b"sqlite_autoindex_alembic_version_1": b"",
    _MIGRATIONS_TABLE: b"CREATE TABLE alembic_version (\n\tversion_num VARCHAR(32) NOT NULL, \n"
    b"\tCONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)\n)",
    b"sqlite_stat1": b"CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    b"sqlite_stat4": b"CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
    b"_litestream_seq": b"CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)",
    b"_litestream_lock": b"CREATE TABLE _litestream_lock (id INTEGER)",
}
"""Name -> the statement with which the tool makes it. Any other definition under these names is an edit of the file.
"""
FORMATS = {
    1: ("713cbd4a254d368fd95c17765ceb98c430ffd2642a7586182801be61bf271c45", _TRIGGERS),
    2: ("7acf4860416768494445484b5fb826bf5ce8f59472951d678d483c7e6cb2e96c", _TRIGGERS + _TREE_TRIGGERS),
    3: (
        "c568aa206b45223470e61b82a15491176b961c7ea48395c5be1226c49dc593d7",
        _TRIGGERS + _TREE_TRIGGERS + _FOREIGN_TRIGGERS,
    ),
}
"""Format -> the digest of its schema, and its triggers. A ledger of an older format is audited in that format."""


def file_problems(connection: sqlite3.Connection) -> list[AuditProblem]:
    """Return the problems of the file's header, and of the tables and triggers that protect the rows."""
    found: list[AuditProblem] = []
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    if application_id != _APPLICATION_ID:
        found.append(AuditProblem(None, "application id", hex(_APPLICATION_ID), hex(application_id)))
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in FORMATS:
        return [*found, AuditProblem(None, "format", f"1 to {max(FORMATS)}", str(version))]
    schema_sha256, expected = FORMATS[version]
    digest = hashlib.sha256()
    triggers, others = set(), dict[bytes, bytes]()
    query = f"SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master WHERE {_IS_TEXT} ORDER BY type, name"  # noqa: S608
    for kind, name, table, sql in connection.execute(query):
        if kind == b"trigger":
            triggers.add(name.decode())
        elif kind in (b"table", b"index") and table.startswith(_TOOL_TABLES):
            others[name] = sql
            continue
        digest.update(b"".join(field + b"\x00" for field in (kind, name, table, sql)))
    (hidden,) = connection.execute(f"SELECT count(*) FROM sqlite_master WHERE NOT ({_IS_TEXT})").fetchone()  # noqa: S608
    found += [AuditProblem(None, "schema", "rows of text", f"{hidden} that aren't text")] if hidden else []
    found += [
        AuditProblem(None, f"trigger {name}", "present", "missing") for name in expected if name not in triggers
    ]
    if digest.hexdigest() != schema_sha256 and not found:
        found.append(AuditProblem(None, "schema", schema_sha256, digest.hexdigest()))
    return found + _tool_table_problems(connection, others, version)


def _tool_table_problems(
    connection: sqlite3.Connection, others: dict[bytes, bytes], version: int
) -> list[AuditProblem]:
    """Return a problem for each table that neither Forge nor its tool for migrations makes.

    If there is none, return one for a recorded migration other than the one of this format.
    """
    found = [
        AuditProblem(
            None, f"schema of {name.decode()}", repr(_TOOL_SCHEMA.get(name, "no such table")), repr(sql)[:200]
        )
        for name, sql in others.items()
        if _TOOL_SCHEMA.get(name) != sql
    ]
    if found:
        return found
    wanted = [(b"%04d" % version,)]
    known = _MIGRATIONS_TABLE in others
    rows = (
        connection.execute("SELECT version_num FROM alembic_version LIMIT 2").fetchall() if known else "no such table"
    )
    return [] if rows == wanted else [AuditProblem(None, "alembic_version", repr(wanted), repr(rows)[:200])]


def page_problems(connection: sqlite3.Connection) -> list[AuditProblem]:
    """Return what SQLite itself finds: damaged pages, indexes that disagree with rows, violated CHECK and UNIQUE."""
    rows = connection.execute("PRAGMA integrity_check(20)").fetchall()
    texts = [row[0].decode() for row in rows]
    return [] if texts == ["ok"] else [AuditProblem(None, "integrity_check", "ok", text) for text in texts]
