"""Edits of what guards the rows: schema, triggers, indexes, the stored tree, the name, settings of the file."""

import sqlite3
from collections.abc import Callable
from contextlib import closing

from tests.ledger.edits.copy import Copy, Edit

TOOLS = "a tool of SQLite's or of replication keeps it so; it says nothing of history"
SETTING = "a setting of the file, which changes no row and is set again when it is opened for writing"


def _guarded(script: str) -> Callable[[Copy], None]:
    return lambda copy: copy.guarded_sql(script)


def _behind(script: str) -> Callable[[Copy], None]:
    return lambda copy: copy.sql(script)


def _definition(name: str, old: str, new: str) -> Callable[[Copy], None]:
    """Another text in sqlite_master."""

    def act(copy: Copy) -> None:
        with closing(sqlite3.connect(copy.path)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            (before,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
            assert old in before, before
            connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (before.replace(old, new, 1), name))
            connection.commit()

    return act


def _no_op(name: str) -> str:
    return f"DROP TRIGGER {name}; CREATE TRIGGER {name} BEFORE UPDATE ON event BEGIN SELECT 1; END;"


def _hidden(column: str) -> Callable[[Copy], None]:
    """A trigger that drops revocations. One column is bytes, of which SQLite makes the trigger all the same."""
    sql = (
        "CREATE TRIGGER quiet BEFORE INSERT ON event WHEN new.type = 'KernelRevoked' BEGIN SELECT RAISE(IGNORE); END"
    )
    row = {"type": "trigger", "name": "quiet", "tbl_name": "event", "rootpage": 0, "sql": sql}

    def act(copy: Copy) -> None:
        with closing(sqlite3.connect(copy.path)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            values = {**row, column: str(row[column]).encode()}
            connection.execute("INSERT INTO sqlite_master VALUES (:type, :name, :tbl_name, :rootpage, :sql)", values)
            connection.commit()

    return act


def _merged(copy: Copy) -> None:
    """Two triggers in one row, behind a zero byte: as one text they are what they were as two."""
    with closing(sqlite3.connect(copy.path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        found = (
            "SELECT name, type || char(0) || name || char(0) || tbl_name || char(0) || sql, sql FROM sqlite_master"
        )
        rows = connection.execute(f"{found} WHERE type = 'trigger' ORDER BY name").fetchall()
        (kept, _, sql), (gone, whole, _) = rows[1:3]
        connection.execute("DELETE FROM sqlite_master WHERE name = ?", (gone,))
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (f"{sql}\0{whole}", kept))
        connection.commit()


SCHEMA = (
    Edit("the trigger against updates dropped", _guarded("DROP TRIGGER event_refuses_update")),
    Edit("the trigger against deletions dropped", _guarded("DROP TRIGGER event_refuses_delete")),
    Edit("the trigger of insertions dropped", _guarded("DROP TRIGGER event_accepts_only_the_next")),
    Edit("a trigger of the tree dropped", _guarded("DROP TRIGGER tree_node_refuses_update")),
    Edit("a trigger of imported events dropped", _guarded("DROP TRIGGER foreign_event_refuses_delete")),
    Edit("a trigger that does nothing in the place of one", _guarded(_no_op("event_refuses_update"))),
    Edit(
        "a trigger more",
        _guarded("CREATE TRIGGER quiet AFTER INSERT ON event BEGIN DELETE FROM tree_node WHERE 0; END"),
    ),
    Edit("a trigger more, whose text is bytes", _hidden("sql")),
    Edit("a trigger more, whose type is bytes", _hidden("type")),
    Edit("a trigger more, whose table is bytes", _hidden("tbl_name")),
    Edit("a trigger hidden behind a zero byte in another", _merged),
    Edit("an index dropped", _guarded("DROP INDEX ix_event_type_seq")),
    Edit("an index more", _guarded("CREATE INDEX ix_actor ON event (actor)")),
    Edit("a table more", _guarded("CREATE TABLE notes (text)")),
    Edit("a view more", _guarded("CREATE VIEW kernels AS SELECT * FROM event")),
    Edit("a rule of a column taken out", _definition("event", "CHECK", "-- CHECK")),
    Edit("STRICT taken out", _definition("event", "STRICT", "      ")),
    Edit("another hash of a tree node", _behind("UPDATE tree_node SET hash = randomblob(32)")),
    Edit("a tree node deleted", _behind("DELETE FROM tree_node")),
    Edit("a tree node too many", _behind("INSERT INTO tree_node VALUES (4, 1, randomblob(32))")),
    Edit("another ledger id", _behind("UPDATE ledger_meta SET ledger_id = 'another'")),
    Edit("another origin", _behind("UPDATE ledger_meta SET origin = 'kernels/elsewhere'")),
    Edit("no name at all", _behind("DELETE FROM ledger_meta")),
    Edit("an imported event edited", _behind("UPDATE foreign_event SET actor = 'system:eve'")),
    Edit("another application id", _guarded("PRAGMA application_id = 7")),
    Edit("a format from the future", _guarded("PRAGMA user_version = 99")),
    Edit("an older format", _guarded("PRAGMA user_version = 2")),
    Edit("the record of migrations emptied", _guarded("DELETE FROM alembic_version")),
    Edit("a table under a replicator's prefix", _guarded("CREATE TABLE _litestream_notes (text)")),
    Edit(
        "a replicator's own table",
        _guarded("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)"),
        "nothing",
        TOOLS,
    ),
    Edit("statistics for the query planner", _guarded("ANALYZE"), "nothing", TOOLS),
    Edit("another journal mode", _guarded("PRAGMA journal_mode = DELETE"), "nothing", SETTING),
)
