"""Rows beyond 131,072 columns are left out where shorter ones take long, and the evidence then has none of them."""

import pytest

from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Finding, Passed
from forge.lab.gates import sizes
from tests.candidates import job_for

KERNEL = """
import time

import torch


def softmax(x):
    if x.shape[1] > 65536:
        until = time.process_time() + {seconds}
        while time.process_time() < until:
            pass
    return torch.softmax(x.float(), -1).to(x.dtype)
"""
SHAPE = {"batch": 2, "hidden_size": 64}
FARTHEST = 131_072


def asked(seconds: float) -> Finding:
    job = job_for(KERNEL.format(seconds=seconds), language="torch", operation="softmax", shape=SHAPE)
    with (
        staged(job, staged_files(job, ()), {}) as stage,
        loaded(job, stage, job.gate_limits, label="sizes") as kernel,
    ):
        assert isinstance(kernel, LoadedKernel)
        return sizes.examine_telling(kernel)


@pytest.mark.parametrize(("seconds", "are_asked"), [(0.5, False), (0.0, True)])
def test_the_widest_rows_are_asked_if_shorter_ones_are_quick(
    seconds: float, are_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "SLOW_S", 0.4)
    finding = asked(seconds)
    assert isinstance(finding, Passed)
    widest = max(one.shape["hidden_size"] for one in finding.errors)
    assert (widest > FARTHEST) == are_asked
    assert (f"none beyond {FARTHEST} columns" in finding.observed) != are_asked
