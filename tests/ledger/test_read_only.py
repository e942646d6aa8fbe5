"""A ledger is read where nothing can be written, and reading never changes its file."""

import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forge.ledger.store import Ledger
from forge.ledger.transfer.copies import copy_database
from tests.unwritable import obey_modes, unwritable

from .making import fill, open_ledger

READ = """
import sys
from pathlib import Path
from forge.errors import ForgeError
from forge.ledger.audit.history import audit
from tests.ledger.making import open_ledger

path = Path(sys.argv[1])
try:
    report = audit(path)
    print(report.ok, report.events, *report.problems)
    with open_ledger(path, read_only=True) as ledger:
        print(ledger.head.seq, len(list(ledger.read())))
except ForgeError as error:
    print(error.code, error.message)
"""


def read_in_another_process(path: Path, *, before: Callable[[], None] = obey_modes) -> list[str]:
    answer = subprocess.run(
        [sys.executable, "-c", READ, path], capture_output=True, text=True, check=False, preexec_fn=before
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "shelf"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("log", [None, b""], ids=["no log", "an empty log"])
def test_a_ledger_at_rest_is_read_where_nothing_can_be_written(log: bytes | None, path: Path, shelf: Path) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 4)
    copied = Path(shutil.copy(path, shelf))
    if log is not None:
        copied.with_name(f"{copied.name}-wal").write_bytes(log)
    with unwritable(shelf):
        assert read_in_another_process(copied) == ["True 5", "5 5"]


def test_events_in_a_log_that_cannot_be_read_here_are_not_passed_over(
    ledger: Ledger, path: Path, shelf: Path
) -> None:
    fill(ledger, 4)
    for name in (path.name, f"{path.name}-wal"):
        shutil.copy(path.with_name(name), shelf)
    with unwritable(shelf):
        (said,) = read_in_another_process(shelf / path.name)
    assert said.startswith("ENVIRONMENT_UNFIT ")
    assert f"{path.name}-wal beside it holds events that can't be read where nothing can be written" in said
    assert read_in_another_process(shelf / path.name) == ["True 5", "5 5"]


def write_nothing() -> None:
    """As on a full disk: no file may grow, not even SQLite's index of a log."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_full_disk_is_not_told_as_damage(path: Path, shelf: Path) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 4)
        for name in (path.name, f"{path.name}-wal"):
            shutil.copy(path.with_name(name), shelf)
    at_rest = Path(shutil.copy(path, shelf / "rest.db"))
    assert read_in_another_process(at_rest, before=write_nothing) == ["True 5", "5 5"]
    (said,) = read_in_another_process(shelf / path.name, before=write_nothing)
    assert said.startswith("ENVIRONMENT_UNFIT ")
    assert "Make room" in said


@pytest.mark.parametrize("read", [lambda one: list(one.read()), lambda one: one.head], ids=["events", "head"])
def test_a_copy_without_a_log_is_not_changed_by_being_read(
    read: Callable[[Ledger], object], ledger: Ledger, shelf: Path
) -> None:
    fill(ledger, 4)
    copied = shelf / "kernel_registry.db"
    with ledger.snapshot() as connection:
        copy_database(connection, copied, progress=lambda _: None)
    before = copied.read_bytes()
    with open_ledger(copied) as opened:
        read(opened)
    assert copied.read_bytes() == before
    with open_ledger(copied) as opened:
        fill(opened, 1)
        assert copied.with_name(f"{copied.name}-wal").exists()
