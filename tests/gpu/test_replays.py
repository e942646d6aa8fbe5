"""A plan that answers its calls rightly, and skips work once it is timed, gains nothing by it."""

import random
import statistics
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from forge.domain.device import Ceilings
from forge.domain.policy import Policy
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.reference.binding import answered
from forge.lab.timing.calibrate import calibrate
from forge.lab.timing.cpu_processes import CANDIDATE
from forge.lab.timing.graph_replay import ReplaySamples, measure_replays
from forge.operations import find_operation
from forge.sandbox.plans import Captured
from tests.candidates import EXAMPLES
from tests.gpu.place import gpu
from tests.gpu.test_plans import CUDA, PLANS, listed, on_the_gpu
from tests.gpu.test_reference import DOUBLED, IN_ROWS, in_triton

SHAPE = {"batch": 2048, "hidden_size": 4096}
"""67 MB of operands: few sets fill the rotation, so that a longer window would ask each of them again."""
POLICY = Policy(process_pairs=2, replay_rounds=6, baselines=("eager",), memory_limit_bytes=2**34)
NO_GAIN = 0.9
"""Of the honest twin's time: a skipped call takes a tenth of it."""


def at_scale(path: Path) -> Job:
    return replace(on_the_gpu(path.read_text(), language="cuda"), shape=SHAPE, dtype="fp16", policy=POLICY)


def measured(path: Path) -> ReplaySamples | Failed:
    return timed(at_scale(path))


@cache
def ceilings() -> Ceilings:
    return calibrate(gpu())


def timed(job: Job) -> ReplaySamples | Failed:
    captured = listed(job)
    assert isinstance(captured, Captured), captured
    return against(job, captured, None)


def against(job: Job, captured: Captured, incumbent: Captured | None) -> ReplaySamples | Failed:
    return measure_replays(
        job, captured, incumbent, ceilings=ceilings(), rng=random.Random(7), progress=lambda _: None
    )


def in_place() -> Job:
    operation = find_operation("kv_cache_append")
    shape = {"tokens": 64, "slots": 512, "kv_heads": 8, "head_dim": 128}
    kernel = (EXAMPLES / "h200" / "kv_cache_append" / "kernel.py").read_text()
    return replace(
        on_the_gpu(kernel),
        operation=operation,
        entry_point=operation.name,
        shape=shape,
        held_out=(),
        dtype="bf16",
        policy=POLICY,
    )


def median_ns(found: ReplaySamples, side: str) -> float:
    return statistics.median(value for rounds in found.per_call_ns(side) for value in rounds)


@pytest.fixture(scope="module")
def honest() -> ReplaySamples:
    found = measured(CUDA)
    assert isinstance(found, ReplaySamples), found
    return found


def test_an_honest_plan_is_timed_beside_its_baseline(honest: ReplaySamples) -> None:
    assert honest.sides == ("candidate", "control", "eager")
    assert [len(rounds) for rounds in honest.pairs] == [POLICY.replay_rounds] * POLICY.process_pairs
    assert all(0.9 < ratio < 1.1 for ratio in honest.host_ratio)
    assert median_ns(honest, "eager") == pytest.approx(median_ns(honest, "control"), rel=0.05)
    assert median_ns(honest, CANDIDATE) < median_ns(honest, "eager")


def test_what_works_in_place_and_returns_nothing_is_timed() -> None:
    found = timed(in_place())
    assert isinstance(found, ReplaySamples), found
    assert median_ns(found, "eager") > median_ns(found, CANDIDATE) > 0


def test_a_kernel_of_ones_own_operation_is_timed_beside_its_reference() -> None:
    policy = POLICY.model_copy(update={"baselines": ("eager", "compile")})
    asked = replace(in_triton(IN_ROWS, DOUBLED.replace("LINE", "pass")), policy=policy, gpu=None)
    with answered(asked) as job:
        found = timed(job)
    assert isinstance(found, ReplaySamples), found
    assert found.sides == ("candidate", "compile", "control", "eager")
    assert median_ns(found, "eager") > median_ns(found, CANDIDATE) > 0


@pytest.mark.parametrize("path", sorted((PLANS / "timed").glob("*.py")), ids=lambda path: path.stem)
def test_work_that_is_skipped_while_it_is_timed_is_refused_or_gains_nothing(
    path: Path, honest: ReplaySamples
) -> None:
    found = measured(path)
    assert isinstance(found, Failed) or median_ns(found, CANDIDATE) >= NO_GAIN * median_ns(honest, CANDIDATE), found


def forgetful() -> Captured:
    found = listed(at_scale(PLANS / "timed" / "forgets_eps_while_it_is_timed.py"))
    assert isinstance(found, Captured), found
    return found


def test_usual_values_alone_answered_rightly_while_timed_are_refused() -> None:
    found = against(at_scale(CUDA), forgetful(), None)
    assert isinstance(found, Failed), found
    assert found.reason.code in ("INCORRECT_NUMERICAL", "NON_FINITE"), found


def test_a_promoted_kernel_that_answers_wrongly_while_it_is_timed_is_left_out() -> None:
    job = at_scale(CUDA)
    captured = listed(job)
    assert isinstance(captured, Captured), captured
    found = against(job, captured, forgetful())
    assert isinstance(found, ReplaySamples), found
    assert found.sides == ("candidate", "control", "eager")
    beside_itself = against(job, captured, captured)
    assert isinstance(beside_itself, ReplaySamples), beside_itself
    assert "promoted" in beside_itself.sides
