"""Layouts beyond the contract: what is claimed is asked and must hold, what isn't claimed isn't asked."""

import dataclasses
from typing import get_args

import pytest

from forge.domain.candidate import Metadata
from forge.domain.evidence import GateResult
from forge.domain.tensors import ClaimableLayout
from forge.lab.job import Job
from forge.lab.verification import Examination, examine
from tests.candidates import job_for
from tests.evil.alone import refusal_by

CLAIMABLE: tuple[ClaimableLayout, ...] = get_args(ClaimableLayout)
RIGHT = """
import torch


def right(x, residual, weight, eps):
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).contiguous(), h.contiguous()

"""
TAKES_STRIDES = f"""{RIGHT}
def fused_add_rmsnorm(x, residual, weight, eps):
    return right(x, residual, weight, eps)
"""
TAKES_ROWS_FOR_DENSE = f"""{RIGHT}
def dense(tensor):
    return tensor.as_strided(tensor.shape, (tensor.shape[1], 1)) if tensor.dim() == 2 else tensor


def fused_add_rmsnorm(x, residual, weight, eps):
    return right(dense(x), dense(residual), weight, eps) if x.numel() else right(x, residual, weight, eps)
"""

pytestmark = pytest.mark.usefixtures("walls", "short_series")


def job_with(kernel: str, *claims: ClaimableLayout) -> Job:
    job = job_for(kernel, language="torch", shape={"batch": 4, "hidden_size": 48})
    claimed = job.metadata.model_copy(update={"layouts": claims})
    return dataclasses.replace(job, metadata=Metadata.model_validate(claimed))


def examined(kernel: str, *claims: ClaimableLayout) -> Examination:
    return examine(job_with(kernel, *claims), progress=lambda _: None)


def asked(found: Examination) -> GateResult:
    return next(gate for gate in found.gates if gate.name == "layouts")


def test_a_kernel_that_takes_strides_may_claim_every_layout() -> None:
    found = examined(TAKES_STRIDES, *CLAIMABLE)
    assert found.verdict.verdict == "accepted", found
    assert all(layout in asked(found).observed for layout in CLAIMABLE)


def test_a_kernel_that_claims_nothing_is_asked_for_its_contract_alone() -> None:
    found = examined(TAKES_ROWS_FOR_DENSE)
    assert found.verdict.verdict == "accepted", found
    assert asked(found).observed == "right in contiguous; none claimed beyond the contract; right at each offset"


@pytest.mark.parametrize("claim", CLAIMABLE)
def test_a_claim_that_doesnt_hold_is_refused(claim: ClaimableLayout) -> None:
    """All other gates accept this kernel, which the test above shows, so this gate is asked alone."""
    reason = refusal_by("layouts", job_with(TAKES_ROWS_FOR_DENSE, claim))
    assert reason.code in ("INCORRECT_NUMERICAL", "NON_FINITE", "RUNTIME_ERROR")
    assert claim in reason.message
