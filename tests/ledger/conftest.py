import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from forge.ledger.store import Ledger

from .making import create, open_ledger


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new, closed ledger; to be copied, never opened."""
    path = tmp_path_factory.mktemp("finished") / "kernel_registry.db"
    create(path).close()
    return path


@pytest.fixture
def path(finished: Path, tmp_path: Path) -> Path:
    """A new, closed ledger of the test's own."""
    return Path(shutil.copy(finished, tmp_path / "kernel_registry.db"))


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with open_ledger(path) as opened:
        yield opened


@pytest.fixture
def tamper(path: Path) -> Callable[[str], None]:
    """Run SQL on the file as someone who owns it: the triggers are dropped for it and put back after it."""

    def run(sql: str) -> None:
        with closing(sqlite3.connect(path)) as connection:
            guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.executescript(sql)
            for _, guard in guards:
                connection.execute(guard)
            connection.commit()

    return run
