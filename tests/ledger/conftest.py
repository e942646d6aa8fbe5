import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from forge.ledger.store import Ledger

from .making import create, edit_as_owner, open_ledger


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
    """Edit the test's ledger as its owner."""
    return partial(edit_as_owner, path)
