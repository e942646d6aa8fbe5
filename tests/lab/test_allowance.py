"""All guests of one candidate share a limit, which the host enforces by ending them."""

from dataclasses import replace

import pytest

from forge.domain.policy import Policy, new_policy
from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.finding import Failed
from forge.lab.job import Job, allowance_of
from forge.sandbox.allowance import Allowance
from tests.candidates import job_for

SLOW = """
import time
import torch

def fused_add_rmsnorm(x, residual, weight, eps):
    until = time.thread_time() + 0.5
    while time.thread_time() < until: pass
    h = x + residual
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * weight, h
"""


def asked_once(job: Job) -> object:
    with (
        staged(job, staged_files(job, ()), {}) as stage,
        loaded(job, stage, job.limits(60.0), label="test") as kernel,
    ):
        return kernel if isinstance(kernel, Failed) else kernel.check([kernel.case(kernel.shape)] * 2)


@pytest.mark.usefixtures("walls")
def test_a_candidate_that_is_slow_in_each_of_its_guests_is_ended_by_what_all_of_them_took() -> None:
    """Each guest is far below its own limit of 60 s."""
    job = replace(job_for(SLOW, language="torch"), allowance=Allowance(1.5, wall_s=3600.0))
    found = next(one for one in (asked_once(job) for _ in range(20)) if isinstance(one, Failed))
    assert found.reason.code == "TIMEOUT"
    used_up = "the guests of the candidate used up their 1.5 s of processor time together"
    assert found.observed == used_up
    size = ", ".join(f"{axis}={count}" for axis, count in job.shape.items())
    assert found.reason.message == f"{used_up}, at {size} with normal inputs"


def test_a_new_workspace_limits_a_candidate_and_an_old_policy_does_not() -> None:
    assert allowance_of(Policy()) is None
    allowance = allowance_of(new_policy())
    assert allowance is not None
    assert allowance.wall_s > allowance.cpu_s > new_policy().verify_limit_s
