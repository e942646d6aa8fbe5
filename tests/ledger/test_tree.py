"""The tree as it is stored beside the events: the same roots however the events came, append-only like them."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forge.errors import ConcurrencyConflict, LedgerCorrupt
from forge.ledger import opening
from forge.ledger.audit.history import audit
from forge.ledger.batch import Batch
from forge.ledger.schema import USER_VERSION
from forge.ledger.store import Ledger
from forge.ledger.tree import StoredTree
from forge.proof.tree import extends, included

from .making import duplicated, fill, open_ledger, stream_of
from .test_merkle import naive_root

GOLDEN = Path(__file__).parent / "golden" / "format-1.db"
Tamper = Callable[[str], None]


def leaves(ledger: Ledger) -> list[bytes]:
    return [row.event_hash for row in ledger.rows()]


def nodes(path: Path) -> list[tuple[int, int, bytes]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT level, place, hash FROM tree_node ORDER BY level, place").fetchall()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.integers(1, 90), min_size=1, max_size=5), data=st.data())
def test_stored_trees_have_the_roots_of_the_definition(
    batches: list[int], data: st.DataObject, finished: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = Path(shutil.copy(finished, tmp_path_factory.mktemp("tree") / "k.db"))
    with open_ledger(path) as ledger:
        for size in batches:
            ledger.append([duplicated(number) for number in range(size)], actor="cli:ada", correlation_id="c")
        all_leaves = leaves(ledger)
        size = data.draw(st.integers(1, len(all_leaves)))
        old, index = data.draw(st.integers(1, size)), data.draw(st.integers(0, size - 1))
        root, before = naive_root(all_leaves[:size]), naive_root(all_leaves[:old])
        with ledger.tree() as tree:
            assert tree.root() == naive_root(all_leaves)
            assert tree.root(size) == root
            assert included(all_leaves[index], index, size, tree.inclusion(index, size), root)
            assert extends(old, before, size, root, tree.consistency(old, size))
    report = audit(path)
    assert report.ok, report.problems
    assert report.root == naive_root(all_leaves).hex()


def test_every_fourth_level_is_stored_as_soon_as_its_subtree_is_complete(path: Path) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 14)
        assert nodes(path) == []
        fill(ledger, 1)
        assert [node[:2] for node in nodes(path)] == [(4, 0)]
        ledger.append([duplicated(number) for number in range(256)], actor="cli:ada", correlation_id="c")
        assert [node[:2] for node in nodes(path)] == [*((4, place) for place in range(17)), (8, 0)]
        stored = leaves(ledger)
    assert nodes(path)[-1][2] == naive_root(stored[:256])


def test_a_transaction_that_is_refused_leaves_no_node(path: Path) -> None:
    good = Batch(events=[duplicated(number) for number in range(20)], actor="cli:ada", correlation_id="c")
    bad = Batch(events=[duplicated(1)], actor="cli:ada", correlation_id="c", expected={stream_of("a"): 5})
    with open_ledger(path) as ledger:
        with pytest.raises(ConcurrencyConflict):
            ledger.append_many([good, bad])
        assert (nodes(path), ledger.head.seq) == ([], 1)
        ledger.append_many([good])
        assert [node[:2] for node in nodes(path)] == [(4, 0)]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("UPDATE tree_node SET hash = zeroblob(32)", "no UPDATE"),
        ("DELETE FROM tree_node", "no DELETE"),
        ("INSERT OR REPLACE INTO tree_node VALUES (4, 0, zeroblob(32))", "next of its level"),
        ("REPLACE INTO tree_node VALUES (4, 1, zeroblob(32))", "next of its level"),
        ("INSERT INTO tree_node VALUES (4, 3, zeroblob(32))", "next of its level"),
        ("INSERT INTO tree_node VALUES (4, 2, zeroblob(32))", "events below"),
        ("INSERT INTO tree_node VALUES (8, 0, zeroblob(32))", "events below"),
        ("INSERT INTO tree_node VALUES (5, 0, zeroblob(32))", "ck_tree_node_level"),
        ("INSERT INTO tree_node VALUES (4, 0, x'00') ON CONFLICT DO UPDATE SET hash = zeroblob(32)", "next of"),
    ],
)
def test_the_database_itself_keeps_the_tree_append_only(sql: str, says: str, path: Path) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 40)
    before = nodes(path)
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other_connection,
        pytest.raises(sqlite3.IntegrityError, match=says),
    ):
        other_connection.execute(sql)
    assert nodes(path) == before
    assert audit(path).ok


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("UPDATE tree_node SET hash = zeroblob(32) WHERE level = 4 AND place = 1", (32, "tree_node level 4")),
        ("DELETE FROM tree_node WHERE level = 4 AND place = 2", (48, "tree_node level 4")),
        ("DELETE FROM tree_node WHERE level = 8", (256, "tree_node level 8")),
        ("INSERT INTO tree_node VALUES (12, 0, zeroblob(32))", (None, "tree_node level 12")),
    ],
)
def test_an_edited_node_is_named_by_the_audit(
    sql: str, found: tuple[int | None, str], path: Path, tamper: Tamper
) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 300)
    tamper(sql)
    problem = audit(path).problems[0]
    assert (problem.seq, problem.what) == found


def test_nodes_that_are_missing_are_derived_and_the_next_append_stores_them(path: Path, tamper: Tamper) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 300)
        expected = naive_root(leaves(ledger))
    tamper("DELETE FROM tree_node")
    with open_ledger(path) as ledger:
        with ledger.tree() as tree:
            assert tree.root() == expected
        fill(ledger, 16)
        assert audit(path).ok


def test_a_tree_looks_at_the_events_of_its_time(path: Path) -> None:
    with open_ledger(path) as ledger, open_ledger(path) as other:
        fill(ledger, 5)
        with ledger.tree() as tree:
            fill(other, 30)
            assert tree.size == 6
            assert tree.root() == naive_root(leaves(other)[:6])
        with ledger.tree() as tree:
            assert tree.size == 36


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A ledger as Forge 0.1.0 of format 1 left it, with 251 events and one of each type."""
    return Path(shutil.copy(GOLDEN, tmp_path / "kernel_registry.db"))


def test_a_ledger_of_format_2_gets_a_place_for_foreign_events_and_nothing_else(tmp_path: Path) -> None:
    path = Path(shutil.copy(GOLDEN.with_name("format-2.db"), tmp_path / "kernel_registry.db"))
    before, content = audit(path), path.read_bytes()
    assert before.ok, before.problems
    assert before.signed == 66
    with pytest.raises(LedgerCorrupt, match=f"format 2, expected {USER_VERSION}"):
        open_ledger(path, read_only=True)
    assert path.read_bytes() == content
    stored = nodes(path)
    with open_ledger(path) as ledger:
        assert [row.seq for row in ledger.rows()] == list(range(1, before.events + 1))
    assert nodes(path) == stored
    after = audit(path)
    assert (after.ok, after.root, after.signed, after.imported) == (True, before.root, 66, 0)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM foreign_event").fetchone() == (0,)
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0003",)


def test_an_older_ledger_is_audited_as_it_stands(old: Path) -> None:
    content = old.read_bytes()
    report = audit(old)
    assert report.ok, report.problems
    assert report.root is not None
    assert old.read_bytes() == content


def test_an_older_ledger_is_brought_up_to_date_when_it_is_opened(old: Path) -> None:
    before = audit(old)
    with open_ledger(old) as ledger:
        events = [row.event_hash for row in ledger.rows()]
        with ledger.tree() as tree:
            assert tree.root().hex() == before.root
        fill(ledger, 20)
    assert len(nodes(old)) == len(events + [b""] * 20) // 16 + 1
    report = audit(old)
    assert report.ok, report.problems
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (USER_VERSION,)
        assert [row[0] for row in connection.execute("SELECT event_hash FROM event ORDER BY seq")][: len(events)] == (
            events
        )


def test_an_older_ledger_is_refused_for_reading_and_left_alone(old: Path) -> None:
    content = old.read_bytes()
    with pytest.raises(LedgerCorrupt, match=f"format 1, expected {USER_VERSION}") as refused:
        open_ledger(old, read_only=True)
    assert refused.value.hint
    assert old.read_bytes() == content


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE event SET actor = 'cli:eve' WHERE seq = (SELECT max(seq) FROM event)",
        "DELETE FROM event WHERE seq = (SELECT max(seq) - 3 FROM event)",
        "CREATE TABLE tree_node (level INTEGER)",
    ],
)
def test_a_damaged_older_ledger_is_not_brought_up_to_date(sql: str, old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(sql)
        for _, guard in guards:
            connection.execute(guard)
        connection.commit()
    with pytest.raises(LedgerCorrupt):
        open_ledger(old)
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_an_upgrade_that_fails_half_way_leaves_the_old_ledger(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree's filling fails after the table was made: a disk that is full shows itself like this."""

    def half(connection: sqlite3.Connection, size: int) -> None:
        connection.execute("INSERT INTO tree_node VALUES (4, 0, ?)", (StoredTree(connection, size).subtree(4, 0),))
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(opening, "grow", half)
    with pytest.raises(sqlite3.OperationalError):
        open_ledger(old)
    monkeypatch.undo()
    assert audit(old).ok
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
    with open_ledger(old) as ledger:
        fill(ledger, 1)
    assert audit(old).ok
