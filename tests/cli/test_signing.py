"""Keys, checkpoints and proofs from the command line: what init leaves, what is refused, and what to do next."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from forge.ledger.store import Ledger
from tests.app.prepared import benchmarked_run, rejected_run
from tests.app.test_crash import killed
from tests.cli.asking import ask, history, ledger_stands
from tests.ledger.making import LEDGER_ID, ORIGIN, new_id, now

CHECKPOINT = ("ledger", "checkpoint")


def types(home: Path) -> list[str]:
    return [one["type"] for one in history(home)]


def roll_back(home: Path, seq: int) -> None:
    """Cut history off behind `seq`, as its owner can."""
    with closing(sqlite3.connect(home / "kernel_registry.db")) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM event WHERE seq > ?", (seq,))
        connection.execute("DELETE FROM tree_node WHERE (place + 1) << level > ?", (seq,))
        for _, guard in guards:
            connection.execute(guard)
        connection.commit()


@pytest.fixture
def keyless(tmp_path: Path) -> Path:
    """A workspace as a Forge without checkpoints made it."""
    home = tmp_path / "older"
    home.mkdir()
    Ledger.create(
        home / "kernel_registry.db", ledger_id=LEDGER_ID, origin=ORIGIN, forge_version="0.1.0", now=now, new_id=new_id
    ).close()
    return home


def test_init_makes_a_key_for_its_owner_and_a_public_one_for_others(empty: Path) -> None:
    (private,) = (empty / "keys").glob("*.key")
    assert private.stat().st_mode & 0o777 == 0o600
    assert (empty / "keys").stat().st_mode & 0o777 == 0o700
    verifier = (empty / "kernel_registry" / "ledger.vkey").read_text()
    assert verifier.count("\n") == 1
    secret = private.read_text().split("+", 4)[-1].strip()
    for path in empty.rglob("*"):
        if path.is_file() and path != private:
            assert secret.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("place", ["pipe", "folder", "loop", "/dev/full"])
def test_what_can_be_no_file_is_refused_before_anything_is_signed(empty: Path, tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    before = types(empty)
    for command in (("checkpoint", "--copy"), ("export",)):
        answer = ask("ledger", *command, tmp_path / place, "--home", empty)
        assert (answer.status, str(tmp_path / place) in answer.error) == (2, True), answer
        assert answer.last == f"try: forge ledger {command[0]} --help"
    assert types(empty) == before


def test_a_checkpoint_is_published_copied_and_found_by_verify(empty: Path, tmp_path: Path) -> None:
    copy = tmp_path / "kept"
    issued = ask(*CHECKPOINT, "--copy", copy, "--home", empty, "--json").document
    assert (issued["size"], issued["origin"]) == (1, issued["key"].split("+")[0])
    assert copy.read_bytes() == (empty / "kernel_registry" / "checkpoint").read_bytes()
    report = ask("ledger", "verify", "--checkpoint", copy, "--home", empty, "--json").document
    assert (report["ok"], report["size"], report["signed"]) == (True, 2, 1)
    assert report["checkpoint"] == {
        "verdict": "consistent",
        "origin": issued["origin"],
        "size": 1,
        "root": issued["root"],
    }
    assert len(report["root"]) == 64
    compared = ask("ledger", "rebuild", "--home", empty, "--json").document["files"]
    assert {one["state"] for one in compared} == {"identical"}
    assert {"checkpoint", "ledger.vkey"} <= {one["file"] for one in compared}


def test_every_seal_is_signed(home: Path) -> None:
    run_id = rejected_run(home, seal=True)
    assert types(home)[-2:] == ["RunSealed", "CheckpointPublished"]
    report = ask("ledger", "verify", "--home", home, "--json").document
    assert (report["ok"], report["signed"]) == (True, report["size"] - 1)
    assert ask("run", "check", run_id, "--home", home).status == 0
    before = history(home)
    assert ask("run", "list", "--home", home).status == 0
    assert history(home) == before


def test_a_ledger_that_was_cut_off_stops_every_command_but_verify(home: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert ask(*CHECKPOINT, "--copy", kept, "--home", home).status == 0
    roll_back(home, 3)
    content = (home / "kernel_registry.db").read_bytes()
    for command in (("run", "list"), CHECKPOINT, ("ledger", "rotate-key"), ("run", "abort", "last")):
        answer = ask(*command, "--home", home)
        assert (answer.status, answer.last) == (1, "try: forge ledger verify"), command
        assert "3 events" in answer.error
    assert (home / "kernel_registry.db").read_bytes() == content
    report = ask("ledger", "verify", "--checkpoint", kept, "--home", home, "--json")
    assert (report.status, report.document["checkpoint"]["verdict"]) == (1, "truncated")
    table = ask("ledger", "verify", "--checkpoint", kept, "--home", home)
    assert "truncated" in table.out


def test_a_workspace_without_a_key_works_and_can_get_one(keyless: Path) -> None:
    assert ask("run", "list", "--home", keyless).status == 0
    assert not (keyless / "kernel_registry" / "ledger.vkey").exists()
    answer = ask(*CHECKPOINT, "--home", keyless)
    assert (answer.status, answer.last) == (2, "try: forge ledger checkpoint --new-key")
    assert "no key" in answer.error
    assert not list((keyless / "keys").glob("*.key"))
    made = ask(*CHECKPOINT, "--new-key", "--home", keyless, "--json")
    assert made.status == 0
    assert (keyless / "kernel_registry" / "ledger.vkey").read_text().strip() == made.document["key"]
    assert ask(*CHECKPOINT, "--new-key", "--home", keyless).last == "try: forge ledger rotate-key"
    assert ledger_stands(keyless)


def test_a_copy_without_the_private_key_can_be_read_and_not_signed(home: Path) -> None:
    shutil.rmtree(home / "keys")
    assert ask("run", "list", "--home", home).status == 0
    assert not (home / "keys").exists()
    run_id = rejected_run(home, seal=True)
    assert ask("run", "check", run_id, "--home", home).status == 0
    answer = ask(*CHECKPOINT, "--home", home)
    assert (answer.status, answer.last) == (2, "try: forge ledger key import --help")
    assert ledger_stands(home)


def test_rotation_publishes_the_new_key_and_old_checkpoints_still_count(home: Path, tmp_path: Path) -> None:
    kept, vkey = tmp_path / "kept", home / "kernel_registry" / "ledger.vkey"
    assert ask(*CHECKPOINT, "--copy", kept, "--home", home).status == 0
    before = vkey.read_text()
    rotated = ask("ledger", "rotate-key", "--home", home, "--json").document
    assert vkey.read_text().strip() == rotated["key"] != before.strip()
    assert ask("ledger", "verify", "--checkpoint", kept, "--home", home).status == 0
    assert ask("ledger", "verify", "--key", vkey, "--home", home).status == 0
    assert ask("ledger", "verify", "--key", before.strip(), "--checkpoint", kept, "--home", home).status == 0
    assert ask("ledger", "verify", "--key", vkey, "--checkpoint", kept, "--home", home).status == 1


def test_proof_of_a_kernel_that_is_not_there(home: Path, tmp_path: Path) -> None:
    answer = ask("ledger", "prove", "nothing_v1", "--home", home)
    assert answer.status == 2
    assert "nothing was promoted" in answer.error
    benchmarked_run(home)
    assert ask("promote", "last", "--home", home).status == 0
    answer = ask("ledger", "prove", "nothing_v1", "--home", home)
    assert answer.status == 2
    assert "unknown kernel 'nothing_v1'" in answer.error
    (entry,) = ask("kernel", "list", "--home", home, "--json").document
    answer = ask("ledger", "prove", entry["kernel_id"], "--out", tmp_path, "--home", home)
    assert answer.status == 2
    assert "expected a file's name" in answer.error


def test_a_checkpoint_that_can_not_be_used_is_said(home: Path, tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(b"\xff")
    for given in (tmp_path / "note", tmp_path / "absent", tmp_path):
        answer = ask("ledger", "verify", "--checkpoint", given, "--home", home, "--json")
        assert (answer.status, answer.document.keys()) == (2, {"error"})
    assert ask("ledger", "verify", "--key", "nonsense", "--home", home).status == 2


def test_a_checkpoint_that_was_killed_at_any_point_contradicts_nothing(home: Path, tmp_path: Path) -> None:
    seen = set()
    for crashed in killed(home, tmp_path / "killed", *CHECKPOINT, most=14):
        assert ledger_stands(crashed)
        seen.add(types(crashed).count("CheckpointPublished"))
        published = crashed / "kernel_registry" / "checkpoint"
        if published.exists():
            assert ask("ledger", "verify", "--checkpoint", published, "--home", crashed).status == 0
        for signed in (crashed / "keys").glob("*.checkpoint"):
            assert ask("ledger", "verify", "--checkpoint", signed, "--home", crashed).status == 0
        issued = ask(*CHECKPOINT, "--home", crashed, "--json")
        assert issued.status == 0
        assert issued.document["size"] == 5
        assert ask("ledger", "verify", "--checkpoint", published, "--home", crashed).status == 0
        assert types(crashed).count("CheckpointPublished") == 1
    assert seen == {0, 1}


def test_a_rotation_that_was_killed_at_any_point_leaves_a_ledger_that_can_be_signed(
    home: Path, tmp_path: Path
) -> None:
    seen = set()
    for crashed in killed(home, tmp_path / "killed", "ledger", "rotate-key", most=14):
        assert ledger_stands(crashed)
        seen.add(types(crashed).count("LedgerKeyRotated"))
        assert ask(*CHECKPOINT, "--home", crashed).status == 0
        assert ledger_stands(crashed)
    assert seen == {0, 1}
