"""A part of a gate and its answer stay what they are on the way to another process and back."""

from dataclasses import replace

import pytest
import torch

from forge.domain.evidence import WorkloadErrors
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab import asked_part as parts
from forge.lab.asked_gates import GateAsked
from forge.lab.asked_part import PartAnswer, answered, asked_candidate, asked_part
from forge.lab.calls.artifact import staged_files
from forge.lab.finding import Failed, NotAsked, Passed
from forge.lab.gates.combinations import COMBINATIONS
from forge.lab.gates.gate import Gate
from forge.lab.gates.leaks import LEAKS
from forge.lab.gates.numerics import NUMERICS
from forge.lab.gates.sizes import SIZES
from forge.lab.job import Job
from forge.lab.observed import Case
from tests.candidates import job_for

RIGHT = """
import torch


def rmsnorm(x, weight, eps):
    h = x.float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)
"""
TENSORS = (
    torch.tensor([1.0, -0.0, float("inf"), float("nan")], dtype=torch.bfloat16),
    torch.randn(3, 5).to(torch.float8_e4m3fn),
    torch.randn(1, 4).expand(3, 4),
    torch.tensor([True, False]),
    torch.tensor(2**40),
    torch.empty(0, 7, dtype=torch.float16),
)
CASE = Case(shape={"batch": 2}, kind="normal", seed=2**60 + 1, inputs=TENSORS, scalars=(1e-6,))
FAILED = Failed(
    reason=Reason(code="NON_FINITE", message="NaN"),
    observed="NaN",
    threshold="none",
    case=CASE,
    log="said",
    raised=True,
)
ERRORS = (WorkloadErrors(shape={"batch": 2}, inputs="normal", max_relative_error=1e-3, bound_used=0.25),)


def sent_and_back(found: GateAsked) -> GateAsked:
    said = PartAnswer(finding=parts._sent_finding(found.finding), seeds=found.seeds, saw_held_out=found.saw_held_out)
    return answered(said.model_dump_json().encode())


@pytest.mark.parametrize(
    "finding",
    [
        Passed(observed="0.25 x the bound", threshold="1 x the bound", errors=ERRORS, calls=3),
        NotAsked(observed="no room", threshold="none"),
        replace(FAILED, case=None),
    ],
)
def test_a_finding_comes_back(finding: Passed | NotAsked | Failed) -> None:
    found = GateAsked(finding=finding, seeds=(1, 2**62), saw_held_out=True)
    assert sent_and_back(found) == found


def test_a_failing_call_comes_back_with_its_operands() -> None:
    found = sent_and_back(GateAsked(finding=FAILED)).finding
    assert isinstance(found, Failed)
    assert found.case is not None
    assert (found.case.shape, found.case.seed, found.case.scalars) == (CASE.shape, CASE.seed, CASE.scalars)
    for there, here in zip(found.case.inputs, TENSORS, strict=True):
        assert (there.dtype, there.shape) == (here.dtype, here.shape)
        assert parts._sent_tensor(there).content == parts._sent_tensor(here).content


def test_large_operands_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_CASE_BYTES", 16)
    found = sent_and_back(GateAsked(finding=FAILED)).finding
    assert found == replace(FAILED, case=None)


def answers(job: Job, *asked: tuple[Gate, int]) -> list[GateAsked]:
    """Ask parts one after the other, as another process does."""
    requests = [asked_candidate(job, staged_files(job, ()), 0), *(asked_part(gate, place) for gate, place in asked)]
    return [answered(said) for said in parts.answers(iter(requests), None)]


def job_of(kernel: str) -> Job:
    return job_for(kernel, language="torch", operation="rmsnorm", shape={"batch": 4, "hidden_size": 64})


@pytest.mark.usefixtures("walls")
def test_parts_are_asked_as_they_were_sent_in_any_order() -> None:
    job = job_of(RIGHT)
    first, second, leaks = answers(job, (NUMERICS, 0), (COMBINATIONS, 1), (LEAKS, 0))
    assert all(isinstance(one.finding, Passed) for one in (first, second, leaks))
    assert answers(job, (COMBINATIONS, 1), (NUMERICS, 0)) == [second, first]


@pytest.mark.usefixtures("walls")
def test_a_new_guest_is_asked_after_one_that_was_refused() -> None:
    ends = RIGHT.replace("    h = x", "    import os\n    x.shape[0] == 1 and os.abort()\n    h = x")
    sizes, numerics, again = answers(job_of(ends), (SIZES, 0), (NUMERICS, 0), (SIZES, 0))
    assert isinstance(sizes.finding, Failed)
    assert isinstance(numerics.finding, Passed)
    assert again == sizes


@pytest.mark.usefixtures("walls")
def test_a_candidate_that_does_not_load_is_the_answer_to_each_part() -> None:
    for found in answers(job_of("import nothing_of_this_name\n"), (NUMERICS, 0), (SIZES, 1)):
        assert isinstance(found.finding, Failed)
        assert found.finding.threshold == "kernel.py loads"


def test_a_machine_that_has_no_answer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfit(*_: object) -> GateAsked:
        raise EnvironmentUnfit("no room", hint="free -m")

    monkeypatch.setattr(parts, "loaded_alone", unfit)
    with pytest.raises(EnvironmentUnfit, match="no room") as caught:
        answers(job_of(RIGHT), (NUMERICS, 0))
    assert caught.value.hint == "free -m"
