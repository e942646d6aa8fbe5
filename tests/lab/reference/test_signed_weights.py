"""A kernel that is right for a new norm's weights, which are all ones, is refused for weights of either sign."""

from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from forge.sandbox.isolation import Walls
from tests.lab.reference.references import ask, job_against

SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.eval()

    def forward(self, x):
        return torch.max_pool1d(self.norm(x), 2)


def get_inputs():
    return [torch.randn(4, 8, 32)]
"""
RIGHT = SOURCE.replace("class Model", "class ModelNew")
POOLED_FIRST = RIGHT.replace("torch.max_pool1d(self.norm(x), 2)", "self.norm(torch.max_pool1d(x, 2))")
ROOT = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = nn.Parameter(torch.ones(16))

    def forward(self, x):
        return x * self.width.sqrt()


def get_inputs():
    return [torch.randn(4, 16)]
"""


@pytest.mark.usefixtures("short_series")
def test_a_norm_behind_a_largest_value_is_asked_with_weights_below_zero(tmp_path: Path, walls: Walls) -> None:
    found = ask(SOURCE)
    executor = LocalExecutor(tmp_path / "lock")
    right, wrong = (
        executor.examine(job_against(found, kernel, "ModelNew"), progress=lambda _: None).verdict
        for kernel in (RIGHT, POOLED_FIRST)
    )
    assert right == Accepted()
    assert isinstance(wrong, Rejected)
    assert wrong.reason.code == "INCORRECT_NUMERICAL"


def test_weights_that_must_be_positive_stay_so(walls: Walls) -> None:
    assert "signed_weights" not in ask(ROOT).contract.kinds
