import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import UniqueConstraint
from sqlalchemy.dialects import sqlite
from sqlmodel import SQLModel

from forge.ledger import statements
from forge.ledger.chain import StoredRow
from forge.ledger.statements import INSERT_EVENT, select_lines, select_page
from forge.ledger.table import EVENT, FOREIGN_EVENT, LEDGER_META, TREE_NODE, LedgerTables


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as opened:
        yield opened


@pytest.mark.parametrize("table", [EVENT, FOREIGN_EVENT, LEDGER_META, TREE_NODE], ids=lambda table: table.name)
def test_the_migrated_table_is_the_one_that_sqlmodel_declares(table, connection: sqlite3.Connection) -> None:
    migrated = [
        (name, kind, bool(not_null), bool(key))
        for _, name, kind, not_null, _, key in connection.execute(f"PRAGMA table_info({table.name})")
    ]
    declared = [
        (column.name, column.type.compile(sqlite.dialect()), not column.nullable, column.primary_key)
        for column in table.columns
    ]
    assert migrated == declared
    (strict,) = connection.execute(
        "SELECT strict FROM pragma_table_list WHERE name = ? AND schema = 'main'", (table.name,)
    ).fetchone()
    assert strict == 1


def test_unique_columns_and_indexes_agree(connection: sqlite3.Connection) -> None:
    migrated = set()
    for _, name, unique, *_ in connection.execute("PRAGMA index_list(event)").fetchall():
        columns = tuple(row[2] for row in connection.execute(f"PRAGMA index_info({name})"))
        migrated.add((bool(unique), columns))
    declared = {(False, tuple(index.columns.keys())) for index in EVENT.indexes} | {
        (True, tuple(constraint.columns.keys()))
        for constraint in EVENT.constraints
        if isinstance(constraint, UniqueConstraint)
    }
    assert migrated == declared


def test_a_stored_row_has_the_tables_columns_in_order() -> None:
    assert tuple(EVENT.columns.keys()) == StoredRow._fields
    assert tuple(FOREIGN_EVENT.columns.keys()) == ("ledger_id", *StoredRow._fields)
    assert INSERT_EVENT.startswith(f"INSERT INTO event ({', '.join(StoredRow._fields)}) VALUES")


def test_the_ledgers_tables_are_kept_apart_from_any_projections() -> None:
    assert set(LedgerTables.metadata.tables) == {"event", "foreign_event", "ledger_meta", "tree_node"}
    assert LedgerTables.metadata is not SQLModel.metadata


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ({"stream": True, "types": 0, "correlation": False}, "(stream=?)"),
        (
            {"stream": False, "types": 2, "correlation": False},
            "ix_event_type_seq (type=? AND seq>? AND seq<?)",
        ),
        ({"stream": False, "types": 0, "correlation": True}, "ix_event_correlation_id_seq"),
        ({"stream": False, "types": 0, "correlation": False}, "INTEGER PRIMARY KEY"),
    ],
)
def test_every_reading_uses_an_index(asked, index: str, connection: sqlite3.Connection) -> None:
    sql = select_page(**asked)
    plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (1,) * sql.count("?")).fetchall()
    assert index in plan[0][3]


@pytest.mark.parametrize(
    "sql",
    [
        *(sql for name, sql in vars(statements).items() if name.startswith(("INSERT_", "SELECT_"))),
        *(select_lines(types) for types in (0, 1, 3)),
    ],
)
def test_sqlite_knows_what_every_statement_names(sql: str, connection: sqlite3.Connection) -> None:
    connection.execute(f"EXPLAIN {sql}", (None,) * (len(set(re.findall(r"\?\d+", sql))) or sql.count("?")))


def test_a_row_is_inserted_whole_into_each_table() -> None:
    for sql, table in (
        (statements.INSERT_META, LEDGER_META),
        (statements.INSERT_NODE, TREE_NODE),
        (statements.INSERT_FOREIGN, FOREIGN_EVENT),
    ):
        assert sql.startswith(f"INSERT INTO {table.name} ({', '.join(table.columns.keys())}) VALUES")
