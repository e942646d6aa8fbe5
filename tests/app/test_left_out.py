"""An audit can leave one machine's evidence out, and says which machine measured."""

from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.domain.digest import sha256
from forge.events import EnvironmentCaptured
from tests.app.prepared import benchmarked_run
from tests.cli.asking import ask, copied
from tests.cli.test_on_another_machine import box
from tests.cli.test_pipeline import NOTHING, folder, task_of

__all__ = ["box"]

BY_EVIDENCE = ("leaderboard", "regressions", "fast-p", "rejections", "claims", "experiments", "effectiveness")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, open_workspace: Path) -> Path:
    folder = copied(open_workspace, tmp_path_factory.mktemp("left_out") / "home")
    benchmarked_run(folder)
    ask("work", "request", "last", "--home", folder)
    assert ask("work", "--once", "--home", folder).status == 0
    return folder


def node_of(home: Path) -> str:
    with Workspace.open(home) as workspace:
        (host,) = {
            one.event.environment.host_sha256
            for one in workspace.ledger.read(types=(EnvironmentCaptured.TYPE,))
            if isinstance(one.event, EnvironmentCaptured)
        }
    return host


def test_a_history_names_the_machine_and_leaves_it_out(measured: Path) -> None:
    history = ("audit", "history", "--op", "fused_add_rmsnorm", "--gpu", "cpu", "--home", measured, "--json")
    (row,) = ask(*history).document["rows"]
    node = node_of(measured)
    assert row["node"] == node[:12]
    assert ask(*history, "--without-node", row["node"]).document["rows"] == []


@pytest.mark.parametrize("name", BY_EVIDENCE)
def test_every_answer_about_evidence_can_leave_a_machine_out(measured: Path, name: str) -> None:
    asked = ("audit", name, "--home", measured, "--json")
    whole = ask(*asked)
    left = ask(*asked, "--without-node", node_of(measured))
    assert (whole.status, left.status) == (0, 0), left
    if name == "leaderboard":
        assert (len(whole.document["rows"]), left.document["rows"]) == (1, [])
    if name == "fast-p":
        assert (whole.document["verified"], left.document["verified"]) == (1, 0)
    if name == "effectiveness":
        assert [row["verified"] for row in left.document["rows"]] == [0]


def test_a_machine_that_is_unknown_is_refused(measured: Path) -> None:
    told = ask("audit", "leaderboard", "--home", measured, "--without-node", "0" * 12)
    assert (told.status, told.error.count("error[")) == (2, 1)
    assert "UNKNOWN_NAME" in told.error
    assert node_of(measured)[:12] in told.error


def test_of_two_workers_of_one_machine_one_can_be_left_out(home: Path, box: Path, tmp_path: Path) -> None:
    """The head names them, and both say the same of their machine."""
    assert box
    task, judged = task_of(home), {}
    for host in ("gpu-box", "other-box"):
        candidate = folder(tmp_path / host, kernel=f"{NOTHING}# {host}\n")
        asked = ("pipeline", task, candidate, "--on", f"ssh://ada@{host}:2222", "--home", home, "--json")
        (one,) = ask(*asked).document["folders"]
        assert one["phases"]["verify"]["node"] == sha256(f"forge node {host}".encode())[:12]
        judged[one["phases"]["verify"]["node"]] = one["phases"]["verify"]["candidate"]
    told = ("audit", "rejections", "--home", home, "--json")
    assert ask(*told).document["refused"] == len(judged) == 2
    for node, candidate in judged.items():
        (left,) = ask(*told, "--without-node", node).document["newest"]
        assert left["candidate"] != candidate
    machine = node_of(home)
    assert ask(*told, "--without-node", machine).document["refused"] == 0, "and a machine with all of its workers"
