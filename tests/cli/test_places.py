"""Places that a caller names and that can't be: one line and exit 2, never a traceback or a full disk."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.asking import Answer, ask, check_manners, create_task, history
from tests.unwritable import obey_modes, unwritable


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


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A pipe that nobody writes to: who waits for it waits for ever."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def said_in_time(*arguments: object) -> str:
    """What a command says that has ended by itself, with exit 2."""
    command = [sys.executable, "-m", "forge", *map(str, arguments)]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    check_manners(Answer(told.returncode, told.stdout, told.stderr), as_json=False)
    assert told.returncode == 2, told.stderr
    return told.stderr


def test_a_policy_that_is_a_pipe_or_without_end_blocks_no_command(empty: Path, pipe: Path) -> None:
    policy = empty / "policy.toml"
    for odd in (pipe, Path("/dev/zero")):
        policy.unlink()
        policy.symlink_to(odd)
        assert "not a regular file" in said_in_time("run", "list", "--home", empty)


@pytest.mark.parametrize("odd", ["pipe", "/dev/zero", "a folder"])
def test_what_a_check_is_given_is_a_regular_file(odd: str, empty: Path, pipe: Path) -> None:
    given = {"pipe": pipe, "a folder": empty}.get(odd, Path(odd))
    key = empty / "kernel_registry" / "ledger.vkey"
    verify = ("ledger", "verify", "--home", empty)
    assert "regular file" in said_in_time(*verify, "--checkpoint", key, "--key", given)
    assert "regular file" in said_in_time(*verify, "--checkpoint", given, "--key", key)
    assert "regular file" in said_in_time("verify-proof", given, "--artifact", key, "--key", key)
    assert "regular file" in said_in_time("verify-proof", key, "--artifact", given, "--key", key)


@pytest.mark.parametrize("name", ["backup.json", "keys/x.key", "keys/last", "keys/d.key"])
def test_a_backup_with_a_pipe_or_a_folder_for_a_file_is_damaged(name: str, empty: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    assert ask("ledger", "checkpoint", "--home", empty).status == 0
    assert ask("ledger", "backup", backup, "--home", empty, "--with-key").status == 0
    (last,) = (backup / "keys").glob("*.checkpoint")
    place = last if name == "keys/last" else backup / name
    place.unlink(missing_ok=True)
    if name == "keys/d.key":
        place.mkdir()
    else:
        os.mkfifo(place)
    command = [sys.executable, "-m", "forge", "ledger", "restore", str(backup), str(tmp_path / "new")]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert told.returncode == 1, told.stderr
    assert "Traceback" not in told.stderr
    assert str(place) in told.stderr
    assert "free space" not in told.stderr


def test_what_a_backup_says_of_itself_wrongly_is_told_in_one_line(empty: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    assert ask("ledger", "backup", backup, "--home", empty).status == 0
    (backup / "backup.json").write_text('{"size": "many"}')
    answer = ask("ledger", "restore", backup, tmp_path / "new")
    assert answer.status == 1
    assert "ledger_id: missing, expected" in answer.error
    assert "take another backup" in answer.error
    assert "pydantic" not in answer.err


def test_a_folder_that_this_user_may_not_write_to_is_the_callers_mistake(home: Path, tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()
    command = [sys.executable, "-m", "forge", "new", "last", str(shut / "kernel"), "--home", str(home)]
    with unwritable(shut):
        answer = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=obey_modes)
    assert answer.returncode == 2, answer
    error, following = answer.stderr.splitlines()[-2:]
    assert f"Permission denied: '{shut / 'kernel'}'" in error
    assert error.endswith("expected a path that this user may read and write")
    assert following.startswith("try: forge new --help")
