"""The incumbent: a candidate that would replace it was measured beside it, and beside no other kernel."""

from dataclasses import replace
from pathlib import Path

import pytest

from forge.app.incumbent import incumbent_kernel
from forge.app.machine.chosen_executor import executor_of
from forge.app.phases.phase_inputs import artifact_of, earlier_samples, evidence_of, incumbent, require_loadable
from forge.app.runs.states import task_of
from forge.app.workspace import Workspace
from forge.domain.digest import Digest, canonical
from forge.errors import EnvironmentUnfit
from forge.events import BenchmarkFailed
from tests.app.prepared import (
    benchmarked,
    benchmarked_run,
    concluded,
    samples,
    submitted,
    verified,
    verified_run,
)
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
        f"kernel on offer: measured beside none, expected beside {promoted.document['kernel_id']}, the incumbent now"
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
        environment = executor_of(workspace).site(workspace.policy).environment
        joined = earlier_samples(workspace, workspace.find_run(run_id), environment)
        assert (joined is not None) is (meanwhile == "nothing")
        elsewhere = environment.model_copy(update={"cpu_model": "another"})
        assert earlier_samples(workspace, workspace.find_run(run_id), elsewhere) is None


def built_run(home: Path) -> tuple[str, Digest]:
    """A promoted run with a built object, and the listing of what was built."""
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        built = {"path": "kernel.so", "sha256": workspace.blobs.put(b"an object"), "size_bytes": 9}
        listing = workspace.blobs.put(canonical({"files": [built]}))
        submitted(workspace, run_id)
        verified(workspace, run_id, artifact_sha256=listing)
        benchmarked(workspace, run_id)
    assert ask("promote", run_id, "--home", home).status == 0
    return run_id, listing


def test_what_was_built_for_another_processor_is_neither_timed_nor_loaded(home: Path) -> None:
    run_id, digest = built_run(home)
    with Workspace.open(home) as workspace:
        run = workspace.find_run(run_id)
        here = evidence_of(workspace, run, executor_of(workspace).site(workspace.policy), attempt=1)
        elsewhere = replace(here, environment=here.environment.model_copy(update={"cpu_features": ("another",)}))
        built = artifact_of(workspace, digest)
        require_loadable(run_id, here, built, here.environment)
        with pytest.raises(EnvironmentUnfit, match="differs from this one in cpu_features") as raised:
            require_loadable(run_id, elsewhere, built, here.environment)
        assert raised.value.hint is not None
        assert raised.value.hint.startswith(f"forge run open {run.task_id}")
        kernel = incumbent_kernel(workspace, task_of(run).family)
        assert kernel is not None
        assert [file.content for file in incumbent(workspace, kernel, here).artifact] == [b"an object"]
        assert incumbent(workspace, kernel, elsewhere).artifact == ()
