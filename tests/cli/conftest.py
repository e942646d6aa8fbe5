from pathlib import Path

import pytest

from tests.cli.asking import QUICK_POLICY, ask, built_once, copied, create_task


@pytest.fixture(scope="session")
def empty_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new workspace; to be copied, never changed."""

    def build(folder: Path) -> None:
        assert ask("init", folder).status == 0
        (folder / "policy.toml").write_text(QUICK_POLICY)

    return built_once(tmp_path_factory, "empty_workspace", build)


@pytest.fixture(scope="session")
def open_workspace(tmp_path_factory: pytest.TempPathFactory, empty_workspace: Path) -> Path:
    """A workspace with one cpp task and its open run; to be copied, never changed."""

    def build(folder: Path) -> None:
        copied(empty_workspace, folder)
        create_task(folder)

    return built_once(tmp_path_factory, "open_workspace", build)


@pytest.fixture
def empty(empty_workspace: Path, tmp_path: Path) -> Path:
    """A new workspace of the test's own."""
    return copied(empty_workspace, tmp_path / "home")


@pytest.fixture
def home(open_workspace: Path, tmp_path: Path) -> Path:
    """A workspace of the test's own with one cpp task and its open run."""
    return copied(open_workspace, tmp_path / "home")
