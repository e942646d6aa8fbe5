"""A folder that is built aside takes a free name or none, whatever another process puts there meanwhile."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forge.app.user.user_paths import folder_aside
from forge.errors import UsageError


def build(target: Path, meanwhile: Callable[[], object]) -> None:
    with folder_aside(target) as aside:
        (aside / "own").write_text("own")
        meanwhile()


def test_a_folder_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "backup"
    build(target, lambda: None if not target.exists() else pytest.fail("it has its name already"))
    assert [path.name for path in target.parent.iterdir()] == ["backup"]
    assert (target / "own").read_text() == "own"


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_name_that_another_process_took_stays_with_it(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    other = target / "theirs" if kind == "folder" else target

    def take() -> None:
        other.parent.mkdir(exist_ok=True)
        other.write_text("theirs")

    with pytest.raises(UsageError, match=r"another process made .*backup.*: give a name that is free"):
        build(target, take)
    assert other.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [target]


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stopped"), folder_aside(tmp_path / "backup"):
        raise ValueError("stopped")
    assert list(tmp_path.iterdir()) == []


def test_of_two_backups_to_one_folder_one_is_told_of_the_other(own: Path, tmp_path: Path) -> None:
    target = tmp_path / "made" / "backup"
    command = [sys.executable, "-m", "forge", "ledger", "backup", str(target), "--home", str(own)]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = {one.communicate(timeout=300)[1]: one.returncode for one in both}
    assert sorted(said.values()) == [0, 2], said
    assert any("give a name that is free" in error for error, status in said.items() if status == 2), said
    assert [path.name for path in target.parent.iterdir()] == ["backup"]
