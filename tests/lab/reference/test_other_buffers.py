"""A module that needs no buffer of the reference's may leave it out, and is judged like any other."""

from functools import cache
from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from forge.lab.reference.infer import Inferred
from forge.sandbox.isolation import Walls
from tests.lab.reference.references import ask, job_against

pytestmark = pytest.mark.usefixtures("short_series")
FILE = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.register_buffer("bias", torch.tril(torch.ones(length, length)))
        self.register_buffer("shift", torch.linspace(0.5, 1.5, width))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = (q @ k.transpose(-2, -1)) * x.shape[-1] ** -0.5
        scores = scores.masked_fill(self.bias[: x.shape[1], : x.shape[1]] == 0, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v + self.shift


def get_inputs():
    return [torch.randn(4, 12, 8)]


def get_init_inputs():
    return [8, 16]
"""
CAUSAL = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.register_buffer("shift", torch.linspace(0.5, 1.5, width))
        self.register_buffer("ready", torch.ones(1))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True) + self.shift
"""


@cache
def frozen() -> Inferred:
    return ask(FILE)


def test_a_causal_kernel_without_the_mask_is_accepted(tmp_path: Path, walls: Walls) -> None:
    job = job_against(frozen(), CAUSAL, "ModelNew")
    assert LocalExecutor(tmp_path / "lock").examine(job, progress=lambda _: None).verdict == Accepted()


def test_a_constant_in_place_of_a_buffer_that_matters_is_refused(tmp_path: Path, walls: Walls) -> None:
    constant = CAUSAL.replace('"shift"', '"kept"').replace("self.shift", "self.kept")
    examined = LocalExecutor(tmp_path / "lock").examine(
        job_against(frozen(), constant, "ModelNew"), progress=lambda _: None
    )
    assert isinstance(examined.verdict, Rejected)
    assert examined.verdict.reason.code == "INCORRECT_NUMERICAL"


NOT_PERSISTENT = CAUSAL.replace("0.5, 1.5, width))", "0.5, 1.5, width), persistent=False)")


def test_a_buffer_that_is_not_persistent_is_given_by_its_name(tmp_path: Path, walls: Walls) -> None:
    job = job_against(frozen(), NOT_PERSISTENT, "ModelNew")
    assert LocalExecutor(tmp_path / "lock").examine(job, progress=lambda _: None).verdict == Accepted()


def test_a_copy_of_the_first_values_of_such_a_buffer_is_refused(tmp_path: Path, walls: Walls) -> None:
    copied = NOT_PERSISTENT.replace("    def forward", "        self.kept = self.shift.clone()\n\n    def forward")
    examined = LocalExecutor(tmp_path / "lock").examine(
        job_against(frozen(), copied.replace("+ self.shift", "+ self.kept"), "ModelNew"), progress=lambda _: None
    )
    assert isinstance(examined.verdict, Rejected)
    assert examined.verdict.reason.code == "INCORRECT_NUMERICAL"


FURTHER_NAMES = CAUSAL.replace(
    '        self.register_buffer("ready"',
    "        self.weight = self.qkv.weight\n"
    '        self.net = nn.Sequential(self.qkv)\n        self.register_buffer("ready"',
).replace("self.qkv(x)", "(F.linear(x, self.weight, self.net[0].bias))")


def test_parameters_under_further_names_are_given_there_too(tmp_path: Path, walls: Walls) -> None:
    job = job_against(frozen(), FURTHER_NAMES, "ModelNew")
    assert LocalExecutor(tmp_path / "lock").examine(job, progress=lambda _: None).verdict == Accepted()


def test_a_parameter_that_copies_the_first_weights_is_refused(tmp_path: Path, walls: Walls) -> None:
    copied = FURTHER_NAMES.replace("= self.qkv.weight", "= nn.Parameter(self.qkv.weight.clone())")
    examined = LocalExecutor(tmp_path / "lock").examine(
        job_against(frozen(), copied, "ModelNew"), progress=lambda _: None
    )
    assert isinstance(examined.verdict, Rejected)
    assert examined.verdict.reason.code == "BAD_SUBMISSION"
