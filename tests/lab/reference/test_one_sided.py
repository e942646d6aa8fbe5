"""A kernel whose running maximum begins at zero is refused, though no row of normal numbers is wholly negative."""

from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from forge.sandbox.isolation import Walls
from tests.lab.reference.references import ask, job_against

SOURCE = """
import torch


def best(x):
    return x.argmax(-1)


def get_inputs():
    return [torch.randn(16, 300)]
"""
RIGHT = "import torch\n\n\ndef best(x):\n    return x.max(-1).indices\n"
FROM_ZERO = "import torch\n\n\ndef best(x):\n    return torch.where((x < 0).all(-1), 0, x.argmax(-1))\n"


@pytest.mark.usefixtures("short_series")
def test_a_largest_value_that_is_negative_is_asked(tmp_path: Path, walls: Walls) -> None:
    found = ask(SOURCE)
    executor = LocalExecutor(tmp_path / "lock")
    right, wrong = (
        executor.examine(job_against(found, kernel, "best"), progress=lambda _: None).verdict
        for kernel in (RIGHT, FROM_ZERO)
    )
    assert right == Accepted()
    assert isinstance(wrong, Rejected)
    assert wrong.reason.code == "INCORRECT_NUMERICAL"
