"""A pooling padded with a number that isn't minus infinity is refused, though normal numbers never reach it."""

from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from forge.sandbox.isolation import Walls
from tests.lab.reference.references import ask, job_against

SOURCE = """
import torch


def pooled(x):
    return torch.nn.functional.max_pool2d(x, 3, stride=2, padding=1)


def get_inputs():
    return [torch.randn(3, 4, 16, 16)]
"""
KERNEL = """
import torch


def pooled(x):
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1), value=PADDING)
    return padded.unfold(2, 3, 2).unfold(3, 3, 2).amax((-1, -2))
"""
RIGHT, WRONG = KERNEL.replace("PADDING", "float('-inf')"), KERNEL.replace("PADDING", "-1000.0")


@pytest.mark.usefixtures("short_series")
def test_values_below_any_usual_padding_are_asked(tmp_path: Path, walls: Walls) -> None:
    found = ask(SOURCE)
    executor = LocalExecutor(tmp_path / "lock")
    right, wrong = (
        executor.examine(job_against(found, kernel, "pooled"), progress=lambda _: None).verdict
        for kernel in (RIGHT, WRONG)
    )
    assert right == Accepted()
    assert isinstance(wrong, Rejected)
    assert wrong.reason.code == "INCORRECT_NUMERICAL"
