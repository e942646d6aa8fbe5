from pathlib import Path

import pytest

from tests.cli.asking import copied
from tests.cli.conftest import empty, empty_workspace, home, open_workspace

__all__ = ["empty", "empty_workspace", "home", "open_workspace", "own"]


@pytest.fixture
def own(open_workspace: Path, tmp_path: Path) -> Path:
    """Another workspace of the test's own with one open run."""
    return copied(open_workspace, tmp_path / "own")
