"""The kernel on offer: whoever would take its place was measured beside it, and beside no other."""

from pathlib import Path

import pytest

from forge.app.recorded import earlier_samples
from forge.app.workspace import Workspace
from forge.events import BenchmarkFailed
from tests.app.prepared import benchmarked_run, concluded, samples, verified_run
from tests.cli.asking import ask, create_task


def test_of_two_runs_that_were_measured_side_by_side_only_one_is_promoted(home: Path) -> None:
    first = benchmarked_run(home)
    create_task(home)
    second = benchmarked_run(home)
    promoted = ask("promote", second, "--home", home, "--json")
    assert promoted.status == 0
    denied = ask("promote", first, "--home", home, "--json")
    assert denied.status == 1
    assert denied.document["reason"]["message"] == (
        f"kernel on offer: measured beside none, expected beside {promoted.document['kernel_id']}, on offer now"
    )


@pytest.mark.parametrize("meanwhile", ["nothing", "another kernel"])
def test_an_earlier_attempts_samples_count_while_the_kernel_on_offer_is_the_same(meanwhile: str, home: Path) -> None:
    run_id = verified_run(home)
    with Workspace.open(home) as workspace:
        event = concluded(workspace, run_id, samples(candidate_ns=-1))
        assert isinstance(event, BenchmarkFailed)
        assert event.reason.code == "NOISE_TOO_HIGH"
    if meanwhile == "another kernel":
        create_task(home)
        benchmarked_run(home)
        assert ask("promote", "last", "--home", home).status == 0
    with Workspace.open(home) as workspace:
        environment = workspace.environment(run_id=run_id)
        joined = earlier_samples(workspace, workspace.find_run(run_id), environment)
        assert (joined is not None) is (meanwhile == "nothing")
        elsewhere = environment.model_copy(update={"cpu_model": "another"})
        assert earlier_samples(workspace, workspace.find_run(run_id), elsewhere) is None
