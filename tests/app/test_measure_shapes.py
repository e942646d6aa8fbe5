"""Timing at further shapes: only after the main one is proven, each by itself, and a wrong answer refuses all."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forge.app.machine.chosen_executor import executor_of
from forge.app.workspace import Workspace
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.finding import Failed
from forge.lab.job import Incumbent
from forge.lab.timing.screening import NO_CONTENDERS
from forge.pipeline.benchmark import Errored
from forge.pipeline.further_shapes import at_shape, measure_shapes
from forge.pipeline.job import RecordedCandidate, build_job_of
from forge.pipeline.timing_setup import TimingSetup
from forge.pipeline.timings import Measured
from tests.app.prepared import gathered, samples, submitted
from tests.cli.asking import copied

SIZES = (16, 8, 4)
FAST, SLOW = samples(), samples(candidate_ns=150_000)


def shape(batch: int) -> dict[str, int]:
    return {"batch": batch, "hidden_size": 4096}


class ScriptedExecutor:
    """An executor whose samples are given: batch -> what comes of a measurement there."""

    def __init__(self, found: dict[int, Callable[[], Any]], no_plan: tuple[int, ...] = ()) -> None:
        self.found, self.no_plan, self.asked = found, no_plan, []

    def own_claims(self, *_: object, **__: object) -> dict[str, float]:
        return {}

    def screen(self, *_: object, **__: object) -> object:
        return NO_CONTENDERS

    def floor_ns(self, *_: object, **__: object) -> float:
        return 20_000.0

    def artifact_at(self, job: Any, artifact: object, **__: object) -> object:
        if job.shape["batch"] in self.no_plan and job.files.get("kernel.py") == b"the incumbent":
            return failed("RUNTIME_ERROR")
        return artifact

    def measure(self, job: Any, *_: object, **__: object) -> object:
        self.asked.append(job.shape["batch"])
        return self.found[job.shape["batch"]]()


def failed(code: str) -> Failed:
    reason = Reason.model_validate({"code": code, "message": "it was so"})
    return Failed(reason=reason, observed="", threshold="")


def fast() -> object:
    return FAST.attempts[0]


@contextmanager
def recorded(folder: Path, workspace_folder: Path) -> Iterator[tuple[Workspace, RecordedCandidate]]:
    """A submitted candidate, of a task with two further shapes."""
    with Workspace.open(copied(workspace_folder, folder)) as workspace:
        run_id = workspace.find_run("last").run_id
        submitted(workspace, run_id)
        found = gathered(workspace, run_id)
        several = {"shape": shape(SIZES[0]), "further_shapes": tuple(map(shape, SIZES[1:]))}
        yield workspace, replace(found, task=found.task.model_copy(update=several))


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory, open_workspace: Path) -> Iterator[RecordedCandidate]:
    with recorded(tmp_path_factory.mktemp("several") / "home", open_workspace) as (_, found):
        yield found


def timed(evidence: RecordedCandidate, executor: ScriptedExecutor, incumbent: Incumbent | None = None) -> object:
    return measure_shapes(
        TimingSetup(
            evidence=evidence,
            executor=executor,  # type: ignore[arg-type]  # a test's: what isn't asked here is left out
            artifact=(),
            incumbent=incumbent,
            ceilings=None,
            rng=random.Random(1),
            progress=lambda _: None,
        ),
        None,
    )


def test_each_shape_is_timed_and_confirmed_by_itself_after_the_main_one(evidence: RecordedCandidate) -> None:
    executor = ScriptedExecutor({16: fast, 8: lambda: SLOW.attempts[0], 4: fast})
    found = timed(evidence, executor)
    assert isinstance(found, Measured)
    assert executor.asked == [16, 16, 8, 4, 4]
    assert [one.shape for one in found.further] == [shape(8), shape(4)]
    assert [one.measured.confirmation is not None for one in found.further] == [False, True]


def test_no_further_shape_is_timed_unless_the_main_one_is_proven(evidence: RecordedCandidate) -> None:
    executor = ScriptedExecutor({16: lambda: SLOW.attempts[0]})
    found = timed(evidence, executor)
    assert isinstance(found, Measured)
    assert (executor.asked, found.further) == ([16], ())


def test_a_wrong_answer_at_a_further_shape_refuses_the_candidate(evidence: RecordedCandidate) -> None:
    found = timed(evidence, ScriptedExecutor({16: fast, 8: fast, 4: lambda: failed("INCORRECT_NUMERICAL")}))
    assert isinstance(found, Failed)
    assert found.reason.code == "INCORRECT_NUMERICAL"
    assert found.reason.message == "at batch=4,hidden_size=4096: it was so"


def test_what_says_nothing_of_the_candidate_leaves_one_shape_open(evidence: RecordedCandidate) -> None:
    found = timed(evidence, ScriptedExecutor({16: fast, 8: lambda: failed("GPU_SHARED"), 4: fast}))
    assert isinstance(found, Measured)
    assert [isinstance(one.measured, Failed) for one in found.further] == [True, False]


def test_a_fault_of_the_machine_at_a_further_shape_is_one_of_the_benchmark(evidence: RecordedCandidate) -> None:
    def unfit() -> object:
        raise EnvironmentUnfit("the device is gone")

    found = timed(evidence, ScriptedExecutor({16: fast, 8: unfit}))
    assert isinstance(found, Errored)
    assert "the device is gone" in found.detail


def test_a_shape_at_which_the_promoted_kernel_can_not_be_timed_stays_open(evidence: RecordedCandidate) -> None:
    incumbent = Incumbent(files={"kernel.py": b"the incumbent"}, artifact=(), entry_point="run")
    executor = ScriptedExecutor({16: fast, 4: fast}, no_plan=(8,))
    found = timed(evidence, executor, incumbent)
    assert isinstance(found, Measured)
    assert executor.asked == [16, 16, 4, 4]
    first = found.further[0].measured
    assert isinstance(first, Failed)
    assert first.reason.code == "INFRASTRUCTURE"
    assert first.reason.message == "the promoted kernel can't be timed at this shape: it was so"


@pytest.mark.slow
@pytest.mark.usefixtures("short_pairs")
def test_a_real_candidate_is_timed_at_another_shape_of_its_task(tmp_path: Path, open_workspace: Path) -> None:
    with recorded(tmp_path / "home", open_workspace) as (workspace, found):
        executor = executor_of(workspace)
        at = replace(at_shape(found, shape(4)), isolation=executor.site(workspace.policy).isolation)
        timing = measure_shapes(
            TimingSetup(
                evidence=at,
                executor=executor,
                artifact=executor.examine_build(build_job_of(at), progress=lambda _: None).artifact,
                incumbent=None,
                ceilings=None,
                rng=random.Random(1),
                progress=lambda _: None,
            ),
            None,
        )
    assert isinstance(timing, Measured), timing
    residence = timing.samples.residence
    assert residence is not None
    assert residence.operand_bytes == 4 * (4 * 4 * 4096 + 4096)
