"""Each bad request of work, of a worker and of a session has one clear message and an event."""

import json
import shutil
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.events import WorkRefused
from tests.app.prepared import rejected_run
from tests.cli.asking import HONEST, ask, ledger_stands

TEMPLATE = HONEST.parent / "templates" / "cpp_fused_add_rmsnorm"
LANES = {"name": "LANES", "values": [1, 4, 8]}


def refused(home: Path) -> list[WorkRefused]:
    with Workspace.open(home) as workspace:
        events = [one.event for one in workspace.ledger.read(types=(WorkRefused.TYPE,))]
    return [event for event in events if isinstance(event, WorkRefused)]


def test_a_request_for_a_sealed_run_is_refused_on_the_record(home: Path) -> None:
    run_id = rejected_run(home)
    answer = ask("work", "request", run_id, "--home", home)
    assert (answer.status, answer.error.count("error[")) == (2, 1)
    assert "is rejected: expected a run with phases up to promote still to be run" in answer.error
    (event,) = refused(home)
    assert (event.asked, event.subject, event.code) == ("work", run_id, "PHASE_OUT_OF_ORDER")
    assert ask("work", "list", "--home", home, "--json").document == []
    assert ledger_stands(home)


@pytest.mark.parametrize("named", [("GPU-gone",), ("GPU-gone", "GPU-gone-too")], ids=["one", "two"])
def test_a_worker_for_a_gpu_that_is_not_there_is_refused_on_the_record(home: Path, named: tuple[str, ...]) -> None:
    devices = [word for name in named for word in ("--device", name)]
    answer = ask("work", "--once", *devices, "--home", home)
    assert (answer.status, answer.error.count("error[")) == (2, 1)
    assert "GPU-gone" in answer.error
    (event,) = refused(home)
    assert (event.asked, event.subject, event.code) == ("worker", ", ".join(named), "UNKNOWN_NAME")


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({"parameters": []}, "parameters"),
        ({"parameters": [LANES], "constraints": ["LANES < 1"]}, "LANES < 1"),
        ({"parameters": [LANES | {"name": "NOT_THERE"}]}, "NOT_THERE"),
    ],
    ids=["empty", "contradictory", "constant not there"],
)
def test_a_session_with_a_bad_space_is_refused_on_the_record(
    home: Path, tmp_path: Path, space: dict[str, object], said: str
) -> None:
    folder = tmp_path / "template"
    shutil.copytree(TEMPLATE, folder)
    (folder / "space.json").write_text(json.dumps(space))
    with Workspace.open(home) as workspace:
        task = workspace.find_run("last").task_id
    answer = ask("agent", "run", task, "--author", "search", "--template", folder, "--home", home)
    assert (answer.status, answer.error.count("error[")) == (2, 1)
    assert said in answer.error
    (event,) = refused(home)
    assert (event.asked, event.subject, event.code) == ("session", "search", "USAGE")
    assert said in event.detail
    assert ask("agent", "list", "--home", home, "--json").document == []
