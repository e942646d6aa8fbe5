"""Gates that are asked beside the candidate's first guest say what they say one after the other."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from forge.lab.asked_gates import Answer, OwnGuests, ask
from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Passed
from forge.lab.gates.combinations import COMBINATIONS
from forge.lab.gates.gate import Gate
from forge.lab.gates.layouts import LAYOUTS
from forge.lab.job import Job
from tests.candidates import job_for

RIGHT = """
import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(x.dtype), h.to(x.dtype)
"""
WRONG_AT_ODD_ADDRESSES = RIGHT.replace("    h = x", "    x = x + 1 if x.data_ptr() % 16 else x\n    h = x")
SLOW = "import time\n" + RIGHT.replace("    h = x", "    time.sleep(0.2)\n    h = x")
GATES: tuple[Gate, ...] = (LAYOUTS, COMBINATIONS)


@contextmanager
def beside(kernel: str) -> Iterator[tuple[Job, LoadedKernel, OwnGuests]]:
    """Load a candidate, and begin the gates beside its first guest."""
    job = job_for(kernel, language="torch", shape={"batch": 8, "hidden_size": 512}, limit_s=120.0)
    with ExitStack() as held:
        stage = held.enter_context(staged(job, staged_files(job, ()), {}))
        first = held.enter_context(loaded(job, stage, job.gate_limits, label="load", fills_memory=True))
        assert isinstance(first, LoadedKernel)
        own = held.enter_context(OwnGuests(job, stage, lambda _: None))
        own.begin(GATES, configurations=0)
        yield job, first, own


def test_a_right_kernel_passes_the_same_questions_in_any_guest() -> None:
    with beside(RIGHT) as (_, first, own):
        answers: dict[str, Answer] = {gate.name: own.answer(gate) for gate in GATES}
        for gate in GATES:
            first.begin(gate.name)
            assert ask(first, gate) == answers[gate.name]
    assert all(isinstance(one.finding, Passed) and one.seeds for one in answers.values())


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_a_wrong_kernel_is_refused_by_each(gate: Gate) -> None:
    with beside(WRONG_AT_ODD_ADDRESSES) as (_, _, own):
        finding = own.answer(gate).finding
    assert isinstance(finding, Failed)
    assert finding.reason.code == "INCORRECT_NUMERICAL"


def test_guests_whose_answers_are_not_wanted_are_ended() -> None:
    with beside(SLOW) as (_, first, _):
        first.begin("layouts")
        checked = first.check([first.case(first.shape)])  # by now the others are loaded, or will be
        assert not isinstance(checked, Failed)
        began_s = time.monotonic()
    # each gate makes more than a hundred calls of 0.2 s
    assert time.monotonic() - began_s < 15
