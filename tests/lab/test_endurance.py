"""The gate `endurance` asks known questions again, and still refuses kernels that keep the answers."""

from dataclasses import replace

import pytest

from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import endurance
from tests.candidates import job_for

RIGHT = """
import torch

def right(x, residual, weight, eps):
    h = x + residual
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return h * scale * weight, h

calls, kept = 0, {}
"""
BODY = """
def fused_add_rmsnorm(x, residual, weight, eps):
    global calls
    calls += 1
    content = x.numpy().tobytes()
    known = content in kept
    if not known:
        kept[content] = right(x, residual, weight, eps)
    y, h = (one.clone() for one in kept[content])
    {then}
    return y, h
"""
WRONG = {
    "on new questions": "y = y if known or calls < 700 else y * 1.01",
    "on known questions": "y = y if not known or calls < 700 else y * 1.01",
    "in one call": "y = y * 1.01 if calls == 777 else y",
    "in the second output": "h = h if calls < 700 else h * 1.01",
    "in one call of a thousand, with rounding errors": "y = y * (1.01 if calls == 777 else 1 + calls % 2 * 2**-23)",
}


@pytest.fixture
def _few_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a release have few calls, as an operation with large outputs has, and a machine take any time."""
    monkeypatch.setattr(endurance, "MOST_BYTES", 2**12)
    monkeypatch.setattr(endurance, "GOALS", (1_001,))
    for limit in ("MOST_S", "MOST_JUDGING_S", "FIRST_S"):
        monkeypatch.setattr(endurance, limit, 1e9)


def examined(kernel: str) -> tuple[Finding, int, int]:
    """Return the gate's finding, and how many questions were drawn for how many calls."""
    job = replace(job_for(kernel, language="torch"), seed=7)
    with (
        staged(job, staged_files(job, ()), {}) as stage,
        loaded(job, stage, job.limits(120.0), label="load") as loaded_kernel,
    ):
        assert isinstance(loaded_kernel, LoadedKernel), loaded_kernel
        loaded_kernel.begin("endurance")
        return endurance.examine(loaded_kernel), len(loaded_kernel.seeds), loaded_kernel.calls


@pytest.mark.usefixtures("walls", "_few_answers")
def test_most_releases_of_a_long_series_ask_what_was_asked_before() -> None:
    finding, questions, calls = examined(RIGHT + BODY.format(then=""))
    assert isinstance(finding, Passed), finding
    assert calls >= 1001
    assert 24 <= questions < 45, "of 92 releases"


@pytest.mark.usefixtures("walls", "_few_answers")
@pytest.mark.parametrize("name", WRONG)
def test_a_kernel_that_turns_wrong_is_refused_although_it_keeps_answers(name: str) -> None:
    finding, _, _ = examined(RIGHT + BODY.format(then=WRONG[name]))
    assert isinstance(finding, Failed), finding
    assert finding.reason.code == "INCORRECT_NUMERICAL"
    assert "in a long row of calls" in finding.reason.message


@pytest.mark.usefixtures("walls", "_few_answers")
def test_answers_that_differ_by_rounding_errors_are_right() -> None:
    finding, _, _ = examined(RIGHT + BODY.format(then="y = y * (1 + calls % 3 * 2**-23)"))
    assert isinstance(finding, Passed), finding


@pytest.mark.usefixtures("walls")
def test_dear_answers_lower_the_number_of_calls_to_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MOST_S", "MOST_JUDGING_S", "FIRST_S"):
        monkeypatch.setattr(endurance, limit, 0.0)
    finding, questions, calls = examined(RIGHT + BODY.format(then=""))
    assert isinstance(finding, Passed), finding
    assert calls == 16
    assert questions <= 8
    assert finding.observed.startswith("16 calls in a row")
    assert "65537 calls not asked" in finding.observed
