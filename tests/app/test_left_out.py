"""An audit can leave one machine's evidence out, and says which machine measured."""

from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.events import EnvironmentCaptured
from tests.app.prepared import benchmarked_run
from tests.cli.asking import ask, copied

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
        (captured,) = (
            one.event
            for one in workspace.ledger.read(types=(EnvironmentCaptured.TYPE,))
            if isinstance(one.event, EnvironmentCaptured)
        )
    return captured.environment.host_sha256


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
