"""At a further shape of a task a kernel is timed by a launch plan that was captured and judged there."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from forge.executor.local import LocalExecutor
from forge.lab.calls.artifact import staged_files
from forge.lab.finding import Failed, Passed
from forge.lab.job import Job
from forge.lab.launch_plan.examine import examine_plan
from forge.lab.launch_plan.launcher import kept_plan
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lookup.tuned import CONFIGURATION_FILE
from forge.sandbox.reply import ArtifactFile
from tests.gpu.place import gpu
from tests.gpu.test_plans import AUTOTUNED, CUDA, HONEST, on_the_gpu, staged_for
from tests.gpu.test_replays import POLICY, ceilings

ELSEWHERE = {"batch": 512, "hidden_size": 2048}


def planned(kernel: str, language: str) -> tuple[Job, tuple[ArtifactFile, ...]]:
    """A job, and what a verification keeps of its candidate: built files and the plan of its shape."""
    job = replace(on_the_gpu(kernel, language=language), policy=POLICY)
    staged = staged_for(job)
    own = set(staged_files(job, ()))
    finding, files = examine_plan(job, staged)
    assert isinstance(finding, Passed), finding
    return job, (*(ArtifactFile(name, body) for name, body in staged.items() if name not in own), *files)


@pytest.fixture
def executor(tmp_path: Path, turns_of_its_own: None) -> LocalExecutor:
    return LocalExecutor(tmp_path / "lock", device=gpu())


@pytest.mark.parametrize(("kernel", "language"), [(HONEST, "triton"), (CUDA.read_text(), "cuda")])
def test_a_plan_of_another_shape_is_captured_and_timed(kernel: str, language: str, executor: LocalExecutor) -> None:
    job, files = planned(kernel, language)
    elsewhere = replace(job, shape=ELSEWHERE)
    found = executor.artifact_at(elsewhere, files, progress=print)
    assert not isinstance(found, Failed), found
    before, after = kept_plan(files), kept_plan(found)
    assert before is not None
    assert after is not None
    assert [one.grid[0] for one in after.plan.kernels] == [512]
    assert after.plan != before.plan
    assert {file.name for file in files} - {"plan.json", *before.plan.cubins} <= {file.name for file in found}
    timed = executor.measure(
        elsewhere, found, None, ceilings=ceilings(), rng=random.Random(7), progress=lambda _: None
    )
    assert isinstance(timed, ReplaySamples), timed
    assert timed.set_bytes == elsewhere.operation.operand_bytes(ELSEWHERE, job.dtype)


def test_a_tuned_kernel_has_a_plan_for_its_main_shape_alone(executor: LocalExecutor) -> None:
    job, files = planned(AUTOTUNED, "triton")
    assert CONFIGURATION_FILE in {file.name for file in files}
    found = executor.artifact_at(replace(job, shape=ELSEWHERE), files, progress=print)
    assert isinstance(found, Failed)
    assert found.reason.code == "INFRASTRUCTURE"
    assert "a tuned kernel is timed at its task's main shape alone" in found.reason.message


def test_a_candidate_without_a_plan_keeps_what_was_built(executor: LocalExecutor) -> None:
    job = on_the_gpu(HONEST)
    assert executor.artifact_at(replace(job, shape=ELSEWHERE), (), progress=print) == ()
