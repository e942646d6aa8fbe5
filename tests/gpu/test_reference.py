"""A reference file of one's own runs on the processor; its candidates run on the GPU, and are judged there."""

from dataclasses import replace
from functools import cache

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.lab.examine import Examination, examine
from forge.lab.reference.binding import answered
from forge.lab.reference.infer import Inferred
from tests.lab.reference.references import POLICY as ON_A_CPU
from tests.lab.reference.references import ask, job_against

POLICY = ON_A_CPU.model_copy(update={"memory_limit_bytes": 2**34})

MODEL = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(features))
        self.shift = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return torch.softmax(x * torch.sigmoid(x * self.scale + self.shift), dim=1)


def get_inputs():
    return [torch.randn(512, 256)]


def get_init_inputs():
    return [256]
"""
AS_SOLVED = MODEL.replace("class Model", "class ModelNew")


@cache
def frozen() -> Inferred:
    return ask(MODEL)


def examined(kernel: str) -> Examination:
    job = replace(job_against(frozen(), kernel, "ModelNew"), device="cuda", policy=POLICY)
    with answered(job) as asked:
        return examine(asked, progress=lambda _: None)


def test_a_right_candidate_is_accepted() -> None:
    found = examined(AS_SOLVED)
    assert isinstance(found.verdict, Accepted), (found.verdict, found.log)


@pytest.mark.parametrize(("right", "wrong"), [(" + self.shift", ""), ("x * torch", "x.half().float() * torch")])
def test_a_wrong_candidate_is_rejected(right: str, wrong: str) -> None:
    found = examined(AS_SOLVED.replace(right, wrong))
    assert isinstance(found.verdict, Rejected), found.gates
    assert found.verdict.reason.code == "INCORRECT_NUMERICAL"
