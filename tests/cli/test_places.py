"""Places that a caller names and that can't be: one line and exit 2, never a traceback or a full disk."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.asking import Answer, ask, check_manners, create_task, history


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    """A link to itself."""
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path / "loop"


def test_a_link_to_itself_is_no_workspace(loop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: tuple[tuple[object, ...], ...] = (
        ("run", "list", "--home", loop),
        ("run", "list", "--home", loop / "below"),
        ("init", loop),
        ("demo", "--home", loop),
        ("ledger", "restore", loop, loop),
    )
    for command in commands:
        answer = ask(*command)
        assert answer.status == 2, command
        assert str(loop) in answer.error
        assert "leads to itself" in answer.error
    monkeypatch.setenv("FORGE_HOME", str(loop))
    assert ask("run", "list").status == 2


def test_a_proof_or_a_checkpoint_is_not_written_to_a_link_to_itself(loop: Path, empty: Path) -> None:
    answer = ask("ledger", "checkpoint", "--copy", loop, "--home", empty)
    assert answer.status == 2, answer.err
    assert "leads to itself" in answer.error


def test_a_name_that_no_file_system_has_is_the_callers_mistake(tmp_path: Path) -> None:
    for place in (tmp_path / ("x" * 300), Path("/".join(["x" * 200] * 30))):
        for command in (("run", "list", "--home", place), ("init", place)):
            answer = ask(*command)
            assert answer.status == 2, command
            assert "File name too long" in answer.error
            assert answer.last.startswith("try: forge ")


@pytest.mark.parametrize("command", [("run", "list"), ("init",)], ids=" ".join)
def test_a_current_folder_that_is_gone_is_the_callers_mistake(tmp_path: Path, command: tuple[str, ...]) -> None:
    line = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    told = subprocess.run(
        ["sh", "-c", line, "sh", sys.executable, "-m", "forge", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    check_manners(Answer(told.returncode, told.stdout, told.stderr), as_json=False)
    assert told.returncode == 2, told.stderr


@pytest.mark.parametrize("name", [b"\xff", b"a\nb", b"\x1b[2J", b" ", b"x" * 500], ids=repr)
def test_a_user_whose_name_no_event_could_hold_is_known_by_number(
    name: bytes, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", os.fsdecode(name))
    create_task(empty)
    assert history(empty)[-1]["actor"].startswith(f"cli:{os.getuid()}@")
