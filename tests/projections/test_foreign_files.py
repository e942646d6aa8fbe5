"""A published folder in which another program put links, pipes and databases of its own."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from forge.projections.catch_up import FILE, own_cursor
from forge.projections.fold import Source
from forge.projections.folds import TAKERS
from forge.projections.publish import CHANGING, StoredFiles, publish, republish
from forge.projections.sqlite_file import SQLITE_SUFFIXES, connect, create
from forge.projections.state import State
from tests.projections.histories import History, opened, past, promoted, revoke

VICTIM = "CREATE TABLE precious (content); INSERT INTO precious VALUES ('kept')"
ENDLESS = "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more)"


def source_of(kernel: object) -> dict[str, bytes]:
    return {f"kernels/{getattr(kernel, 'kernel_id')}/kernel.py": b"pass"}  # noqa: B009 (any event with an id)


@pytest.fixture
def history() -> History:
    history = opened()
    promoted(history)
    return history


@pytest.fixture
def folder(tmp_path: Path, history: History) -> Path:
    publish(tmp_path / "registry", lambda: past(history.events), StoredFiles(of_kernel=source_of))
    return tmp_path / "registry"


def again(folder: Path, history: History) -> None:
    publish(folder, lambda: past(history.events), StoredFiles(of_kernel=source_of))


def victim(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(VICTIM)
    return path


def is_unharmed(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT content FROM precious").fetchall() == [("kept",)]


def seq_of(folder: Path) -> int | None:
    with closing(connect(folder / FILE, read_only=True)) as tables:
        cursor = own_cursor(tables)
        return None if cursor is None else cursor.seq


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal", "-shm"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_database_that_a_link_leads_to_is_never_written(folder, history, tmp_path, link, suffix):
    ledger = victim(tmp_path / "kernel_registry.db")
    before = ledger.read_bytes()
    for beside in SQLITE_SUFFIXES if suffix else ("", *SQLITE_SUFFIXES):
        (folder / f"{FILE}{beside}").unlink(missing_ok=True)
    link(ledger, folder / f"{FILE}{suffix}")
    promoted(history, name="other")
    again(folder, history)
    assert ledger.read_bytes() == before
    assert is_unharmed(ledger)
    assert seq_of(folder) == len(history.events)


def test_a_database_of_another_program_is_replaced_and_not_written_into(folder, history):
    for name in folder.glob(f"{FILE}*"):
        name.unlink()
    victim(folder / FILE)
    kept = os.open(folder / FILE, os.O_RDONLY)
    before = os.pread(kept, 1 << 20, 0)
    again(folder, history)
    assert os.pread(kept, 1 << 20, 0) == before
    os.close(kept)
    assert seq_of(folder) == len(history.events)


@pytest.mark.parametrize("name", [FILE, "current.json", "verified_kernels.json", "leaderboard.json"])
def test_a_pipe_holds_no_publisher_up(folder, history, name):
    for one in folder.glob(f"{name}*"):
        one.unlink()
    os.mkfifo(folder / name)
    again(folder, history)
    republish(folder, lambda: past(history.events), StoredFiles(of_kernel=source_of))
    assert (folder / name).is_file()
    assert seq_of(folder) == len(history.events)


@pytest.mark.parametrize("level", ["kernels", "kernels/{id}"])
def test_a_folder_that_is_a_link_is_replaced_and_nothing_is_written_where_it_leads(folder, history, tmp_path, level):
    kernel = next((folder / "kernels").iterdir())
    inside = folder / level.format(id=kernel.name)
    elsewhere = tmp_path / "elsewhere"
    inside.rename(elsewhere)
    kernels = {path.relative_to(elsewhere): path.read_bytes() for path in elsewhere.rglob("*.py")}
    inside.symlink_to(elsewhere)
    for path in elsewhere.rglob("*.py"):
        path.write_bytes(b"mine")
    republish(folder, lambda: past(history.events), StoredFiles(of_kernel=source_of))
    assert {path.read_bytes() for path in elsewhere.rglob("*.py")} == {b"mine"}
    assert not inside.is_symlink()
    assert {path.relative_to(inside): path.read_bytes() for path in inside.rglob("*.py")} == kernels


@pytest.mark.parametrize(
    "change",
    [
        f"ALTER TABLE cursor RENAME TO kept; CREATE VIEW cursor AS {ENDLESS} SELECT kept.* FROM kept, more",
        f"DROP TABLE kernel_documents; CREATE VIEW kernel_documents AS {ENDLESS} SELECT n AS kernel_id FROM more",
        "CREATE TRIGGER lost AFTER INSERT ON kernels BEGIN DELETE FROM kernels; END",
        "ALTER TABLE kernels ADD COLUMN more GENERATED ALWAYS AS (hex(zeroblob(100000000)))",
    ],
    ids=["endless cursor", "endless documents", "trigger", "generated column"],
)
def test_tables_that_forge_would_not_make_are_built_anew_before_they_are_asked(folder, history, change):
    with closing(sqlite3.connect(folder / FILE)) as tables:
        tables.executescript(change)
    promoted(history, name="other")
    again(folder, history)
    assert seq_of(folder) == len(history.events)
    with closing(connect(folder / FILE, read_only=True)) as tables:
        assert tables.execute("SELECT count(*) FROM kernels").fetchone() == (2,)


def test_every_event_that_changes_the_documents_has_a_type_that_a_signer_looks_for():
    history = opened()
    kernel = promoted(history)
    revoke(history, kernel)
    changed: set[str] = set()
    source: Source = past(history.events)
    with closing(create(Path(":memory:"))) as tables:
        state = State(tables)
        for line in source.lines(0):
            state.changed = None
            for take in TAKERS.get(line.type, ()):
                take(state, line, source)
            state.settle()
            assert state.changed is None or line.type in CHANGING
            changed |= {line.type} if state.changed else set()
    assert changed >= {"LedgerOpened", "EnvironmentCaptured", "KernelPromoted", "KernelRevoked"}
