"""Where gates are asked in guests of their own, one guest is asked more shapes than caches hold."""

import dataclasses

import pytest

from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates import sequences
from forge.lab.job import Job
from forge.lab.runner import PROCESSOR, Runner
from tests.candidates import job_for

KERNEL = """
import torch

plans = {{}}


def rmsnorm(x, weight, eps):
    h = x.float()
    y = (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype)
    plan = plans.setdefault(x.shape, len(plans))
    return y if plan < {most} else y * 2
"""
SHAPE = {"batch": 4, "hidden_size": 64}


class BesideJob(Job):
    """A job on a processor whose guests run beside each other, as they do beside a GPU."""

    @property
    def runner(self) -> Runner:
        return dataclasses.replace(PROCESSOR, leaves_host_idle=True)


def asked(most: int, *, beside: bool) -> Finding:
    job = job_for(KERNEL.format(most=most), language="torch", operation="rmsnorm", shape=SHAPE)
    if beside:
        job = BesideJob(**{field.name: getattr(job, field.name) for field in dataclasses.fields(job)})
    with (
        staged(job, staged_files(job, ()), {}) as stage,
        loaded(job, stage, job.gate_limits, label="sequences") as kernel,
    ):
        assert isinstance(kernel, LoadedKernel)
        return sequences.examine(kernel)


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize("most", [128, 256])
def test_a_kernel_that_runs_out_of_plans_is_refused(most: int) -> None:
    finding = asked(most, beside=True)
    assert isinstance(finding, Failed)
    assert finding.reason.code == "INCORRECT_NUMERICAL"


@pytest.mark.usefixtures("walls")
def test_a_right_kernel_passes_as_many_and_another_gate_asks_them_elsewhere() -> None:
    finding = asked(sequences.MANY + 40, beside=True)
    assert isinstance(finding, Passed)
    assert f"then {sequences.MANY + sequences.AGAIN} of small ones" in finding.observed
    elsewhere = asked(128, beside=False)
    assert isinstance(elsewhere, Passed)


@pytest.mark.usefixtures("walls")
def test_a_kernel_that_is_slow_at_each_new_shape_is_asked_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "MANY_S", 1e-6)
    finding = asked(128, beside=True)
    assert isinstance(finding, Passed)
    assert "then 1 of small ones" in finding.observed
