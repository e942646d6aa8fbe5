"""Which run a worker takes next: one whose baselines its place has compiled, but the oldest one before long."""

from pathlib import Path

import pytest

from forge.app.machine import chosen_executor
from forge.app.phases.phases import submit_candidate
from forge.app.work import worker
from forge.app.work.requests import request_work
from forge.app.work.worker import Worker
from forge.app.workspace import Workspace
from tests.cli.asking import HONEST, ask, copied
from tests.executor.at_once import AtOnce


def requested(home: Path, shapes: str) -> dict[str, str]:
    """Request a slow candidate at each shape in turn, by its letter; return each run's name by its id."""
    tasks: dict[str, str] = {}
    named: dict[str, str] = {}
    for number, letter in enumerate(shapes):
        if letter not in tasks:
            asked = ("--op", "fused_add_rmsnorm", "--language", "cpp", "--gpu", "cpu", "--dtype", "fp32")
            shape = f"batch=16,hidden_size={1024 * (ord(letter) - ord('A') + 1)}"
            made = ask("task", "create", *asked, "--shape", shape, "--home", home, "--json").document
            tasks[letter] = made["task_id"]
        else:
            assert ask("run", "open", tasks[letter], "--home", home).status == 0
        folder = copied(HONEST, home.parent / f"candidate_{number}")
        (folder / "kernel.py").write_text(f"{(HONEST / 'kernel.py').read_text()}\n# slow {number}\n")
        with Workspace.open(home) as workspace:
            run_id = workspace.find_run("last").run_id
            submit_candidate(workspace, workspace.find_run(run_id), folder, author="ada")
            request_work(workspace, workspace.find_run(run_id), "promote")
        named[run_id] = f"{letter}{number}"
    return named


@pytest.mark.parametrize(
    ("most", "order"), [(8, ["A0", "A2", "A3", "A4", "B1", "B5"]), (1, ["A0", "A2", "B1", "A3", "A4", "B5"])]
)
def test_a_worker_prefers_what_its_place_has_compiled_and_lets_the_oldest_run_wait_for_a_few_at_most(
    empty: Path, monkeypatch: pytest.MonkeyPatch, most: int, order: list[str]
) -> None:
    monkeypatch.setattr(chosen_executor, "LocalExecutor", AtOnce)
    monkeypatch.setattr(worker, "MOST_PREFERRED", most)
    named = requested(empty, "ABAAAB")
    served = Worker(lambda: Workspace.open(empty), lambda _: lambda _: None).work_off()
    answers = list(served)
    assert [one["state"] for one in answers] == ["failed"] * len(named)
    assert [named[str(one["run_id"])] for one in answers] == order
