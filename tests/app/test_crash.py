"""A phase that is killed at any point: the ledger stands, and the run can be taken up again to its end."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.events import ClaimAssessed, ClaimRecorded
from tests.app.killing import conclude
from tests.app.prepared import benchmarked_run, rejected_run, submitted, verified_run
from tests.cli.asking import HONEST, SHAPE, ask, copied, create_task, history, ledger_stands

ROOT = Path(__file__).parents[2]
SLOT = ("--op", "fused_add_rmsnorm", "--gpu", "cpu", "--dtype", "fp32", "--shape", SHAPE)


def killed(prepared: Path, into: Path, *command: object, most: int, status: int = 0) -> Iterator[Path]:
    """Copies of a prepared workspace in which the command was killed, each at another point.

    `status` is the exit status of the command if it isn't killed.
    """
    into.mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "tests.app.killing", str(prepared), str(into), *map(str, (most, status, *command))],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["count"] >= 10, "the command makes nothing durable"
    assert len(found["killed"]) >= min(most, found["count"]) // 2
    for fatal in found["killed"]:
        yield into / str(fatal)


def count(home: Path, type_name: str) -> int:
    """How many events of a type were stored, before anything is put right."""
    with closing(sqlite3.connect(home / "kernel_registry.db")) as connection:
        return int(connection.execute("SELECT count(*) FROM event WHERE type = ?", (type_name,)).fetchone()[0])


def _state(home: Path) -> dict[str, object]:
    state: dict[str, object] = ask("run", "show", "last", "--home", home, "--json").document
    return state


def test_a_task_that_was_killed_while_it_was_created_can_be_taken_up(empty: Path, tmp_path: Path) -> None:
    seen = set()
    for home in killed(empty, tmp_path / "killed", "task", "create", *SLOT, "--language", "cpp", most=10):
        assert ledger_stands(home)
        tasks = ask("task", "list", "--home", home, "--json").document
        runs = ask("run", "list", "--home", home, "--json").document
        seen.add((len(tasks), len(runs)))
        if not tasks:
            create_task(home)
        elif not runs:
            assert ask("run", "open", tasks[0]["task_id"], "--home", home).status == 0
        assert ask("submit", "last", HONEST, "--home", home).status == 0
        assert _state(home)["state"] == "candidate_ready"
        assert ask("prompt", "last", "--home", home).out.startswith("# Write a kernel")
        assert ledger_stands(home)
    assert {(0, 0), (1, 1)} <= seen


def test_a_submission_that_was_killed_can_be_made_again(home: Path, tmp_path: Path) -> None:
    seen = set()
    for crashed in killed(home, tmp_path / "killed", "submit", "last", HONEST, most=10):
        assert ledger_stands(crashed)
        state = str(_state(crashed)["state"])
        seen.add(state)
        assert ask("submit", "last", HONEST, "--home", crashed).status == 0
        run = _state(crashed)
        assert run["state"] == "candidate_ready"
        types = [one["type"] for one in history(crashed)]
        assert types.count("CandidateSubmitted") == 1
        folder = crashed / "forge_runs" / f".tmp-{run['run_id']}" / "candidate"
        for name in ("kernel.py", "metadata.json"):
            assert (folder / name).read_bytes() == (HONEST / name).read_bytes()
        assert ask("run", "abort", "last", "--home", crashed).status == 0
        assert ledger_stands(crashed)
    assert "prompt_ready" in seen


def test_a_promotion_that_was_killed_ends_as_if_it_had_not_been(home: Path, tmp_path: Path) -> None:
    benchmarked_run(home)
    seen = set()
    for crashed in killed(home, tmp_path / "killed", "promote", "last", most=22):
        assert ledger_stands(crashed)
        promoted, sealed = (count(crashed, name) for name in ("KernelPromoted", "RunSealed"))
        seen.add((promoted, sealed))
        again = ask("promote", "last", "--home", crashed, "--json")
        assert (again.status, again.document["verdict"]) == (0, "accepted")
        assert ("recorded already" in again.err) == bool(promoted)
        run = _state(crashed)
        assert (run["state"], run["sealed"]) == ("promoted", True)
        assert ask("run", "abort", "last", "--home", crashed).status == 2
        events = history(crashed)
        (promotion,) = [one for one in events if one["type"] == "KernelPromoted"]
        assert [one["type"] for one in events].count("RunSealed") == 1
        shown = json.loads((crashed / "forge_runs" / str(run["run_id"]) / "promotion.json").read_bytes())
        assert shown == promotion["payload"]
        assert ask("run", "check", "last", "--home", crashed, "--json").document["ok"] is True
        found = ask("lookup", *SLOT, "--home", crashed, "--json").document
        assert (found["match"], found["kernel_id"]) == ("exact", promotion["payload"]["kernel_id"])
        compared = ask("ledger", "rebuild", "--home", crashed, "--json").document["files"]
        assert {one["state"] for one in compared} == {"identical"}
        assert ledger_stands(crashed)
    assert {(0, 0), (1, 0), (1, 1)} <= seen, "killed before, between and after"


def test_a_benchmark_that_was_killed_while_it_was_recorded_can_be_repeated(home: Path, tmp_path: Path) -> None:
    verified_run(home)
    seen = set()
    for crashed in killed(home, tmp_path / "killed", "conclude", most=16):
        assert ledger_stands(crashed)
        types = [one["type"] for one in history(crashed)]
        seen.add(tuple(types.count(name) for name in ("BaselineRecorded", "ClaimRecorded", "BenchmarkRecorded")))
        if _state(crashed)["state"] == "verified":
            conclude(crashed, wobble=0.02)
        assert _state(crashed)["state"] == "benchmarked"
        assert ask("promote", "last", "--home", crashed).status == 0
        with Workspace.open(crashed) as workspace:
            stored = [one.event for one in workspace.ledger.read()]
        claims = [one.claim_id for one in stored if isinstance(one, ClaimRecorded)]
        assessed = [one.claim_id for one in stored if isinstance(one, ClaimAssessed)]
        assert len(claims) == 2
        assert sorted(assessed) == sorted(claims)
        assert ledger_stands(crashed)
    assert any(baselines and not benchmarks for baselines, _, benchmarks in seen), "killed in between"


def test_a_verification_that_was_killed_leaves_a_run_to_go_on_with(home: Path) -> None:
    with Workspace.open(home) as workspace:
        submitted(workspace, workspace.find_run("last").run_id)
    for pause_s in (0.3, 1.0, 2.0):
        command = [sys.executable, "-m", "forge", "verify", "last", "--home", str(home)]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(pause_s)
        running.send_signal(signal.SIGKILL)
        if running.wait() != -signal.SIGKILL:
            pytest.fail("the verification came to an end before it was killed")
        assert ledger_stands(home)
        assert _state(home)["state"] == "candidate_ready"
    assert ask("run", "abort", "last", "--home", home).status == 0
    assert ledger_stands(home)


def test_a_rejected_run_that_was_not_sealed_is_sealed_when_it_is_looked_at(home: Path) -> None:
    run_id = rejected_run(home, seal=False)
    other = copied(HONEST, home.parent / "other")
    (other / "kernel.py").write_text("# another\n")
    assert ask("submit", "last", other, "--home", home).status == 2
    assert ask("run", "abort", "last", "--home", home).status == 2
    assert ask("run", "check", run_id, "--home", home, "--json").document["ok"] is True
    assert [one["type"] for one in history(home)][-2:] == ["RunSealed", "CheckpointPublished"]
