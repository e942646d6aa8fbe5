"""A benchmark without a verdict is repeated as often as the caller allows, and every attempt is recorded."""

from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.domain.verdict import UNDECIDED
from tests.app.prepared import verified, verified_run
from tests.cli.asking import QUICK_POLICY, ask, create_task, history
from tests.cli.test_again import RIGHT, candidate


def failed(home: Path) -> list[int]:
    return [one["payload"]["attempt"] for one in history(home) if one["type"] == "BenchmarkFailed"]


@pytest.mark.slow
@pytest.mark.usefixtures("walls", "short_pairs")
def test_an_attempt_without_a_verdict_is_followed_by_another(empty: Path, tmp_path: Path) -> None:
    no_machine_is_so_calm = QUICK_POLICY.replace("control_half_width = 0.5", "control_half_width = 1e-12")
    (empty / "policy.toml").write_text(no_machine_is_so_calm)
    run_id = create_task(empty, language="torch")["run_id"]
    folder = candidate(tmp_path / "right", RIGHT)  # nothing is built, so an acceptance can be recorded as it is
    assert ask("submit", run_id, folder, "--home", empty).status == 0
    with Workspace.open(empty) as workspace:
        verified(workspace, run_id)
    answer = ask("bench", run_id, "--attempts", "2", "--home", empty, "--json")
    assert (answer.status, answer.document["verdict"]) == (1, "inconclusive"), answer
    assert answer.document["reason"]["code"] in UNDECIDED  # noise, unless a busy machine gives another reason
    assert "no verdict in attempt 1 of 2 (" in answer.err
    assert failed(empty) == [1, 2]


def test_bad_numbers_of_attempts_are_refused(home: Path) -> None:
    run_id = verified_run(home)
    assert ask("bench", run_id, "--attempts", "0", "--home", home).status == 2
    assert ask("bench", run_id, "--attempts", "9", "--home", home).status == 2
    refused = ask("bench", run_id, "--attempts", "2", "--replicate", "--home", home)
    assert (refused.status, "measured once" in refused.error) == (2, True)
    assert failed(home) == []
