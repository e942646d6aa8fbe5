"""A kernel that is right for a new layer's small weights alone is refused for larger ones, as trained ones are."""

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
        self.linear = nn.Linear(32, 24)

    def forward(self, x):
        y = self.linear(x)
        return ANSWER


def get_inputs():
    return [torch.rand(16, 32)]
"""


@pytest.mark.usefixtures("short_series")
@pytest.mark.parametrize(
    ("right", "wrong", "kind"),
    [
        ("torch.nn.functional.relu6(y)", "torch.relu(y)", "large_weights"),
        ("y.softmax(1)", "y.exp() / y.exp().sum(1, keepdim=True)", "far_weights"),
    ],
)
def test_parameters_are_asked_that_are_larger_than_new_ones(
    right: str, wrong: str, kind: str, tmp_path: Path, walls: Walls
) -> None:
    found = ask(SOURCE.replace("ANSWER", right))
    assert kind in found.contract.kinds
    executor = LocalExecutor(tmp_path / "lock")
    accepted, refused = (
        executor.examine(
            job_against(found, SOURCE.replace("class Model", "class ModelNew").replace("ANSWER", one), "ModelNew"),
            progress=lambda _: None,
        ).verdict
        for one in (right, wrong)
    )
    assert accepted == Accepted()
    assert isinstance(refused, Rejected)
    assert f"{kind} inputs" in refused.reason.message
