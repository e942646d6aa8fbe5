"""Ledgers as each earlier Forge left them: audited as they stand, brought up to date, and nothing in them changed.

A format is a file in `golden`; the next one adds its file and no line here: python -m tests.ledger.suites.golden.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from forge.errors import LedgerCorrupt
from forge.ledger.audit.history import audit
from forge.ledger.schema import OLDER_SCHEMAS, USER_VERSION
from tests.ledger.suites.golden import GOLDEN
from tests.ledger.suites.ledgers import fill, opened
from tests.ledger.suites.reports import killed
from tests.ledger.suites.sizes import rounds

FILES = {int(path.stem.removeprefix("format-")): path for path in GOLDEN.glob("format-*.db")}
OURS = ("event", "foreign_event", "ledger_meta", "tree_node")
EVERY = pytest.mark.parametrize("version", sorted(FILES))
OLDER = pytest.mark.parametrize("version", sorted(FILES.keys() - {USER_VERSION}))


@pytest.fixture
def old(version: int, tmp_path: Path) -> Path:
    return Path(shutil.copy(FILES[version], tmp_path / "kernel_registry.db"))


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of ours, as it is stored."""
    with closing(sqlite3.connect(path)) as connection:
        there = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
            for name in OURS
            if name in there
        }


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_every_format_that_forge_knows_has_its_golden_ledger() -> None:
    assert FILES.keys() == OLDER_SCHEMAS.keys() | {USER_VERSION}


@EVERY
def test_a_golden_ledger_is_of_its_format_and_sound_as_it_stands(version: int, old: Path) -> None:
    content = old.read_bytes()
    report = audit(old)
    assert report.ok, report.problems
    assert report.events > 20
    assert version_of(old) == version
    assert old.read_bytes() == content


@EVERY
def test_opening_brings_it_up_to_date_and_changes_no_row(version: int, old: Path) -> None:
    before, report = rows(old), audit(old)
    with opened(old) as ledger:
        assert ledger.head.event_hash == report.head
        with ledger.tree() as tree:
            assert tree.root().hex() == report.root
        assert sum(1 for _ in ledger.read()) == report.events
    after = rows(old)
    assert version_of(old) == USER_VERSION
    assert set(after) == set(OURS)
    assert {name: after[name] for name in before} == before
    with opened(old) as ledger:
        fill(ledger, 40)
    later = audit(old)
    assert later.ok, later.problems
    assert later.events == report.events + 40
    assert rows(old)["event"][: report.events] == before["event"]


@EVERY
def test_opening_it_again_changes_nothing(version: int, old: Path) -> None:
    opened(old).close()
    content = old.read_bytes()
    opened(old).close()
    assert old.read_bytes() == content


@OLDER
def test_a_reader_leaves_an_older_ledger_alone_and_says_what_to_do(version: int, old: Path) -> None:
    content = old.read_bytes()
    with pytest.raises(LedgerCorrupt, match=f"format {version}, expected {USER_VERSION}") as refused:
        opened(old, read_only=True)
    assert refused.value.hint
    assert old.read_bytes() == content


@OLDER
def test_an_upgrade_that_is_killed_is_made_again(version: int, old: Path, tmp_path: Path) -> None:
    report = killed("upgrading", old, tmp_path / "killed", rounds(5, long=300))
    assert report["boundaries"] > 50
    assert report["kills"] >= 4
    assert version_of(old) == version


def test_an_audit_of_what_a_killed_upgrade_left_says_how_to_go_on(tmp_path: Path) -> None:
    path = Path(shutil.copy(FILES[2], tmp_path / "kernel_registry.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")  # changed pages go to the file before the end
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE half (bytes)")
        connection.executemany("INSERT INTO half VALUES (?)", [(bytes(4096),) for _ in range(64)])
        for name in ("kernel_registry.db", "kernel_registry.db-journal"):
            (tmp_path / f"left-{name}").write_bytes((tmp_path / name).read_bytes())
    left = tmp_path / "left-kernel_registry.db"
    (problem,) = audit(left).problems
    assert "forge ledger recover" in problem.found
    opened(left).close()
    assert audit(left).ok
