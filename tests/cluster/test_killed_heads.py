"""A head that is killed at each step of a run on another machine: what is recorded is what one machine records."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forge.app.phases.phases import submit_candidate
from forge.app.work.requests import request_work
from forge.app.workspace import Workspace
from tests.cli.asking import HONEST, ask, copied, history, ledger_stands
from tests.executor.sshd import SSHD, served, ssh_with

ROOT = Path(__file__).parents[2]
AT_ONCE = ROOT / "tests" / "executor" / "at_once.py"
DECIDED = ("CandidateVerified", "BenchmarkRecorded", "KernelPromoted", "RunSealed")
AFTER = {
    "before the job is sent": (0, 0, 0, 0),
    "while the job is judged": (0, 0, 0, 0),
    "when the judgement has come": (0, 0, 0, 0),
    "when the judgement is recorded": (1, 0, 0, 0),
    "between judging and timing": (1, 0, 0, 0),
    "before the measurement is sent": (1, 0, 0, 0),
    "while it is measured": (1, 0, 0, 0),
    "when the samples have come": (1, 0, 0, 0),
    "when the benchmark is recorded": (1, 1, 0, 0),
    "before the promotion": (1, 1, 0, 0),
    "when the promotion is recorded": (1, 1, 1, 0),
    "not at all": (1, 1, 1, 1),
}
"""Decisions that are stored after each death."""
OF_THE_PLACE = {"env_sha256", "samples_sha256", "report_sha256", "created_at", "promoted_event_hash"}
"""Fields of the registry that name the machine, the time, or a text that names them."""


def requested(home: Path, watched: Path) -> Path:
    """Hand in a candidate that says where it is watched, and ask for all its phases; return its folder."""
    watched.mkdir()
    folder = copied(HONEST, watched / "candidate")
    (folder / "kernel.py").write_text(f"{(HONEST / 'kernel.py').read_text()}\n# watched {watched}\n")
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        submit_candidate(workspace, workspace.find_run(run_id), folder, author="ada")
        request_work(workspace, workspace.find_run(run_id), "promote")
    return folder


def registry(home: Path) -> Any:
    """Every kernel that is published, without what names the place."""

    def without_place(found: Any) -> Any:
        match found:
            case dict():
                return {name: without_place(one) for name, one in found.items() if name not in OF_THE_PLACE}
            case list():
                return [without_place(one) for one in found]
            case _:
                return found

    published = json.loads((home / "kernel_registry" / "verified_kernels.json").read_bytes())
    return without_place(published["kernels"])


def types(home: Path) -> list[str]:
    """The types of all events but checkpoints: the next head signs at once what a killed one left unsigned."""
    return [one["type"] for one in history(home) if one["type"] != "CheckpointPublished"]


@pytest.fixture(params=["ssh", "ray"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a machine that answers at once, and the environment in which it is reached."""
    if request.param == "ray":
        yield request.getfixturevalue("places")[0], dict(os.environ)
        return
    if SSHD is None:
        pytest.skip("there is no sshd here")
    (tmp_path / "sshd").mkdir()
    with served(tmp_path / "sshd", sys.executable, AT_ONCE) as there:
        yield there.address, ssh_with(there.settings, tmp_path / "bin")


def test_heads_that_are_killed_at_each_step_record_together_what_one_machine_does(
    place: tuple[str, dict[str, str]], home: Path, tmp_path: Path
) -> None:
    watched = tmp_path / "watched"
    folder = requested(home, watched)
    alone = copied(home, tmp_path / "alone")
    heads = [sys.executable, "-m", "tests.cluster.dying_heads", home, watched, place[0]]
    ran = subprocess.run(heads, env=place[1], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    told = json.loads(ran.stdout.splitlines()[-1])

    assert {one["step"]: tuple(one["stored"].get(name, 0) for name in DECIDED) for one in told} == AFTER
    assert [one["status"] for one in told] == [-9] * (len(AFTER) - 1) + [0]
    calls = {one["step"]: one["calls"] for one in told}
    last = calls["not at all"]
    assert last["examine"] == calls["when the judgement is recorded"]["examine"], "what is recorded is asked once"
    assert last["measure"] == calls["when the benchmark is recorded"]["measure"]

    asked_alone = [sys.executable, AT_ONCE, "work", "--once", "--home", alone]
    subprocess.run(asked_alone, stdout=subprocess.DEVNULL, check=True)
    assert types(home) == types(alone), "nothing was judged twice, and nothing is lost"
    assert registry(home) == registry(alone) != []
    assert ledger_stands(home)

    again = ask("pipeline", "last", folder, "--resume", "--home", home, "--json")
    assert again.document["kernel_id"] is not None
    assert types(home) == types(alone), "it is decided"
