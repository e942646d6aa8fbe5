"""The next process repairs what a killed process left, once, if no other process is at work."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forge.app.ledger.recovery import FOLDER_GONE, RECOVERY, Recovery, recover
from forge.app.workspace import Workspace
from forge.ledger.crash_marker import Presence, presence_path
from tests.app.prepared import rejected_run
from tests.app.test_crash import count
from tests.cli.asking import ask, history, ledger_stands

HALF_DONE = """
import os, signal, sys
from pathlib import Path
from forge.app.workspace import Workspace
from forge.ledger.durable import PART_PREFIX

workspace = Workspace.open(Path(sys.argv[1]))
cas = workspace.runs_root / "cas" / "ab"
cas.mkdir(exist_ok=True)
(cas / f"{PART_PREFIX}blob").write_bytes(b"half")
(workspace.runs_root / "briefs" / f"{PART_PREFIX}brief").write_bytes(b"half")
(workspace.home / "keys" / f"{PART_PREFIX}key").write_bytes(b"half a secret")
(workspace.runs_root / ".tmp-20260301T120000_rmsnorm_cpu_0a1b2c").mkdir()
kept = workspace.runs_root / ".tmp-20260301T120001_rmsnorm_cpu_0a1b2c"
kept.mkdir()
(kept / "kernel.py").write_text("a person's work")
print("here", flush=True)
if sys.argv[2] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.readline()
workspace.__exit__(None)
"""


def leave_half_done(home: Path, how: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HALF_DONE, str(home), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    if how == "die":
        assert process.wait() == -signal.SIGKILL
        process.communicate()
    return process


def parts(home: Path) -> list[str]:
    return sorted(path.relative_to(home).as_posix() for path in home.rglob(".part-*"))


def test_the_next_command_sweeps_what_a_killed_one_left_and_says_so(home: Path) -> None:
    leave_half_done(home, "die")
    assert parts(home) == ["forge_runs/briefs/.part-brief", "forge_runs/cas/ab/.part-blob", "keys/.part-key"]
    answer = ask("run", "list", "--home", home)
    assert answer.status == 0
    assert [line for line in answer.err.splitlines() if line.startswith("recovered: ")] == [
        "recovered: removed forge_runs/.tmp-20260301T120000_rmsnorm_cpu_0a1b2c, which was half written",
        "recovered: removed forge_runs/briefs/.part-brief, which was half written",
        "recovered: removed forge_runs/cas/ab/.part-blob, which was half written",
        "recovered: removed keys/.part-key, which was half written",
    ]
    assert parts(home) == []
    assert (home / "forge_runs" / ".tmp-20260301T120001_rmsnorm_cpu_0a1b2c" / "kernel.py").exists()
    assert ask("run", "list", "--home", home).err == ""
    assert ledger_stands(home)


def test_nothing_of_a_live_process_is_touched(home: Path) -> None:
    alive = leave_half_done(home, "live")
    try:
        before = parts(home)
        answer = ask("ledger", "recover", "--home", home)
        assert answer.status == 1
        assert "another process" in answer.err
        assert ask("run", "list", "--home", home).status == 0
        assert parts(home) == before
    finally:
        alive.communicate("go\n", timeout=120)
    assert alive.returncode == 0
    assert ask("run", "list", "--home", home).err == "", "it ended in good order: no process looks for debris"
    assert ask("ledger", "recover", "--home", home, "--json").document["swept"]
    assert parts(home) == []


def test_a_crash_beside_a_live_process_is_remembered_until_no_process_is_there(home: Path) -> None:
    with Workspace.open(home) as workspace:
        leave_half_done(home, "die")
        assert "recovered" not in ask("run", "list", "--home", home).err
        assert workspace.presence is not None
        assert not workspace.presence.after_a_crash
    assert "recovered: removed" in ask("run", "list", "--home", home).err


def test_two_that_recover_at_once_do_it_once(home: Path) -> None:
    leave_half_done(home, "die")
    command = [sys.executable, "-m", "forge", "ledger", "recover", "--home", str(home), "--json"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [one.communicate(timeout=120) for one in running]
    found = [json.loads(out) for out, _ in answers]
    assert sorted(len(one["swept"]) for one in found) == [0, 4]
    assert parts(home) == []
    assert ledger_stands(home)


def test_a_run_whose_folder_is_gone_is_closed_and_one_that_waits_is_not(home: Path, own: Path) -> None:
    (folder,) = (home / "forge_runs").glob(".tmp-*")
    shutil.rmtree(folder)
    for _ in range(2):
        assert ask("ledger", "recover", "--home", home).status == 0
    (aborted,) = [one for one in history(home) if one["type"] == "RunAborted"]
    assert (aborted["actor"], aborted["payload"]["reason"]) == (RECOVERY, FOLDER_GONE)
    assert ask("ledger", "recover", "--home", own, "--json").document["aborted"] == []
    dry = ask("ledger", "recover", "--home", own, "--abort-open", "--dry-run", "--json").document
    assert (dry["recorded"], len(dry["aborted"])) == (False, 1)
    assert count(own, "RunAborted") == 0
    assert len(ask("ledger", "recover", "--home", own, "--abort-open", "--json").document["aborted"]) == 1
    assert ask("ledger", "recover", "--home", own, "--abort-open", "--json").document["aborted"] == []
    assert ledger_stands(home)
    assert ledger_stands(own)


def test_a_run_at_its_end_is_sealed_and_what_is_behind_is_published(home: Path) -> None:
    run_id = rejected_run(home, seal=False)
    shutil.rmtree(home / "kernel_registry")
    with Workspace.open(home) as workspace:
        foreseen = recover(workspace, dry_run=True)
        found = recover(workspace)
        assert foreseen.sealed == found.sealed
        assert (found.sealed, found.aborted) == ((run_id,), ())
        assert recover(workspace) == Recovery(alone=True, after_a_crash=False)
    assert (home / "kernel_registry" / "current.json").exists()
    assert ask("run", "check", run_id, "--home", home).status == 0
    assert ledger_stands(home)


LEAVE_A_LOG = """
import os, signal, sys
from pathlib import Path
from forge.app.workspace import Workspace
from tests.app.prepared import submitted

workspace = Workspace.open(Path(sys.argv[1]))
submitted(workspace, workspace.find_run("last").run_id)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_log_that_a_crash_left_is_read_and_merged(home: Path) -> None:
    root = Path(__file__).parents[2]
    died = subprocess.run([sys.executable, "-c", LEAVE_A_LOG, str(home)], cwd=root, check=False, timeout=120)
    assert died.returncode == -signal.SIGKILL
    log = home / "kernel_registry.db-wal"
    assert log.stat().st_size > 0
    answer = ask("run", "show", "last", "--home", home, "--json")
    assert answer.document["state"] == "candidate_ready"
    assert "recovered: updated the published files" in answer.err
    assert not log.exists()
    assert ledger_stands(home)


def test_presence_counts_and_lets_no_process_in_while_one_is_alone(tmp_path: Path) -> None:
    database = tmp_path / "k.db"
    first = Presence(database)
    second = Presence(database)
    with first.alone() as alone:
        assert not alone
    second.leave()
    with first.alone() as alone, open(presence_path(database)) as other:
        assert alone
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    first.leave()
    assert presence_path(database).read_bytes() == b"+" + b"+-" + b"-"
    third = Presence(database)
    assert not third.after_a_crash
    os.close(third._descriptor)  # as if it had been killed
    fourth = Presence(database)
    assert fourth.after_a_crash
    with fourth.alone() as alone:
        assert alone
        fourth.settle()
    fourth.leave()
    assert not Presence(database).after_a_crash
