"""Work on request: the ledger is the queue, a worker takes a run by a lock, and a request gets one attempt."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forge.app.work.requests import request_work, withdraw_work
from forge.app.work.worker import Worker
from forge.app.workspace import Workspace
from forge.errors import ActorForbidden
from forge.events import WorkRequested
from tests.app.prepared import benchmarked_run, rejected_run, verified_run
from tests.app.test_crash import count, killed
from tests.cli.asking import ask, create_task, history, ledger_stands

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys
from pathlib import Path
from forge.ledger.runs.directory import RunDirectory
from forge.ledger.runs.taken import taken

with taken(RunDirectory(Path(sys.argv[1]), sys.argv[2])) as is_ours:
    print(is_ours, flush=True)
    sys.stdin.readline()
"""


def requested(home: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = ask("work", "list", "--home", home, "--json").document
    return found


@contextmanager
def process(*arguments: object) -> Iterator["subprocess.Popen[str]"]:
    started = subprocess.Popen(
        [sys.executable, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def test_a_worker_answers_a_request_once(home: Path) -> None:
    run_id = benchmarked_run(home)
    asked = ask("work", "request", "last", "--home", home, "--json").document
    assert (asked["run_id"], asked["until"], asked["state"]) == (run_id, "promote", "benchmarked")
    assert ask("work", "request", "last", "--home", home).status == 0
    assert [one["run_id"] for one in requested(home)] == [run_id]
    done = ask("work", "--once", "--home", home, "--json").document
    assert (done["run_id"], done["state"], done["error"]) == (run_id, "promoted", None)
    assert requested(home) == []
    assert ask("work", "--once", "--home", home).out == ""
    recorded = {one["type"]: one["actor"] for one in history(home)}
    assert recorded["KernelPromoted"] == "system:gate"
    assert [one["type"] for one in history(home)].count("WorkRequested") == 1
    assert ledger_stands(home)


def test_a_request_for_what_cannot_be_run_is_refused(home: Path) -> None:
    early = ask("work", "request", "last", "--home", home)
    assert early.status == 2
    assert "is prompt_ready: work expects a run that is candidate_ready" in early.error
    verified_run(home)
    past = ask("work", "request", "last", "--until", "verify", "--home", home)
    assert past.status == 2
    assert "is verified: expected a run with phases up to verify still to be run" in past.error
    unknown = ask("work", "request", "last", "--until", "shipped", "--home", home)
    assert unknown.status == 2
    assert "expected one of bench, promote, verify" in unknown.error
    create_task(home)
    rejected_run(home)
    ended = ask("work", "request", "last", "--home", home)
    assert ended.status == 2
    assert "is rejected" in ended.error


def test_a_request_can_be_withdrawn(home: Path) -> None:
    run_id = benchmarked_run(home)
    assert "no open request" in ask("work", "withdraw", "last", "--home", home).error
    ask("work", "request", "last", "--home", home)
    assert ask("work", "withdraw", "last", "--reason", "not now", "--home", home).status == 0
    assert requested(home) == []
    assert ask("work", "--once", "--home", home).out == ""
    assert ask("run", "show", run_id, "--home", home, "--json").document["state"] == "benchmarked"


def test_an_agent_may_ask_and_withdraws_only_its_own_request(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmarked_run(home)
    ask("work", "request", "last", "--home", home)
    with Workspace.open(home) as workspace:
        run = workspace.find_run("last")
        assert run.request is not None
        monkeypatch.setattr("forge.app.workspace.command_line_actor", lambda: "agent:search")
        with pytest.raises(ActorForbidden, match="an agent withdraws its own"):
            withdraw_work(workspace, run, "mine now")
        assert request_work(workspace, run, "promote") == run.request, "it stands already"
        event = WorkRequested(run_id=run.run_id, candidate=run.request.event.candidate, until="promote")
        workspace.append((event,), run_id=run.run_id, key="test:agent asks")
        withdraw_work(workspace, workspace.find_run("last"), "another is better")
    assert requested(home) == []


def test_a_run_of_another_worker_is_passed_over_until_that_worker_is_gone(home: Path) -> None:
    run_id = benchmarked_run(home)
    ask("work", "request", "last", "--home", home)
    with process("-c", HOLDER, home / "forge_runs", run_id) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert ask("work", "--once", "--home", home).out == ""
        with process("-c", HOLDER, home / "forge_runs", run_id) as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "False\n"
        with process("-m", "forge", "work", "--home", home, "--json") as waiting:
            assert waiting.stdout is not None
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            assert json.loads(waiting.stdout.readline())["state"] == "promoted"
    assert [one["type"] for one in history(home)].count("KernelPromoted") == 1
    assert ledger_stands(home)


def test_a_waiting_worker_sees_a_request_and_leaves_the_workspace_to_others(home: Path) -> None:
    benchmarked_run(home)
    with process("-m", "forge", "work", "--home", home, "--json") as waiting:
        assert waiting.stdout is not None
        ask("work", "request", "last", "--home", home)
        assert json.loads(waiting.stdout.readline())["state"] == "promoted"
        os.kill(waiting.pid, signal.SIGKILL)
        waiting.wait()
    assert requested(home) == []
    assert ledger_stands(home)


def test_two_workers_judge_each_run_once(home: Path) -> None:
    asked = []
    for _ in range(3):
        asked.append(benchmarked_run(home))
        assert ask("work", "request", asked[-1], "--home", home).status == 0
        create_task(home)
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "forge", "work", "--once", "--json", "--home", str(home)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for _ in range(2)
    ]
    lines = [line for worker in workers for line in worker.communicate()[0].splitlines()]
    summaries = [json.loads(line) for line in lines]
    assert [one for one in summaries if one["error"] is not None] == []
    worked_on = [one["run_id"] for one in summaries]
    assert len(worked_on) == len(set(worked_on)), summaries
    ask("work", "--once", "--home", home)  # for what the slower one passed over when the faster one was at it
    assert {one["state"] for one in ask("run", "list", "--home", home, "--json").document} <= {
        *("promoted", "denied", "prompt_ready"),
    }
    decisions = [one["type"] for one in history(home)]
    assert decisions.count("KernelPromoted") + decisions.count("PromotionDenied") == len(asked)
    assert ledger_stands(home)


def test_a_worker_leaves_what_its_machine_cannot_run(home: Path) -> None:
    create_task(home, language="triton", gpu="h200")
    assert ask("submit", "last", ROOT / "examples" / "honest_triton", "--home", home).status == 0
    ask("work", "request", "last", "--home", home)
    assert ask("work", "--once", "--home", home).out == ""
    assert [one["target"] for one in requested(home)] == ["h200"]
    missing = ask("work", "--device", "7", "--device", "8", "--home", home)
    assert missing.status == 2
    assert "unknown GPU '7'" in missing.error


def test_a_worker_that_was_killed_anywhere_leaves_work_that_the_next_one_ends(home: Path, tmp_path: Path) -> None:
    benchmarked_run(home)
    ask("work", "request", "last", "--home", home)
    seen = set()
    for crashed in killed(home, tmp_path / "killed", "work", "--once", most=12):
        assert ledger_stands(crashed)
        seen.add((count(crashed, "KernelPromoted"), count(crashed, "RunSealed")))
        assert ask("work", "--once", "--home", crashed).status == 0
        run = ask("run", "show", "last", "--home", crashed, "--json").document
        assert (run["state"], run["sealed"]) == ("promoted", True)
        types = [one["type"] for one in history(crashed)]
        assert (types.count("KernelPromoted"), types.count("RunSealed")) == (1, 1)
        assert requested(crashed) == []
        assert ledger_stands(crashed)
    assert len(seen) >= 2, "killed before and after the decision"


def test_a_request_that_another_worker_answered_meanwhile_is_not_worked_on_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmarked_run(home)
    ask("work", "request", "last", "--home", home)
    late = Worker(lambda: Workspace.open(home), lambda _: lambda _: None)
    with Workspace.open(home) as workspace:
        seen = late._next(workspace, set())
    assert seen is not None
    assert ask("work", "--once", "--home", home).status == 0
    found = iter((seen, None))
    monkeypatch.setattr(late, "_next", lambda *_: next(found))  # what it read before the other worker was done
    assert list(late.work_off()) == []
    assert [one["type"] for one in history(home)].count("KernelPromoted") == 1
