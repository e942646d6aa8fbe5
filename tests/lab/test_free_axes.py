"""Axes beside rows and sum that a kernel must take in any size: tails along them are found."""

import json

import pytest

from forge.domain.candidate import Metadata
from forge.domain.policy import Policy
from forge.domain.verdict import Accepted, Rejected
from forge.lab.admission.mutants import admit
from forge.lab.job import Job
from forge.lab.verification import examine
from forge.languages import find_language
from forge.operations import OPERATIONS, find_operation
from tests.candidates import EXAMPLES, isolation

SHAPE = {"m": 4, "k": 64, "n": 24}
RIGHT = """
import torch


def matmul(x, w):
    return torch.matmul(x, w)
"""
IN_EIGHTS = """
import torch


def matmul(x, w):
    y = torch.zeros(x.shape[0], w.shape[1], dtype=x.dtype)
    for start in range(0, w.shape[1] // 8 * 8, 8):
        y[:, start : start + 8] = torch.matmul(x, w[:, start : start + 8])
    return y
"""


def job_of(kernel: str) -> Job:
    files = {name: (EXAMPLES / "h200" / "matmul" / name).read_bytes() for name in ("reference.py", "bench.py")}
    described: dict[str, object] = {"name": "a candidate", "op": "matmul", "language": "torch"}
    files |= {"kernel.py": kernel.encode(), "metadata.json": json.dumps(described).encode()}
    return Job(
        operation=find_operation("matmul"),
        language=find_language("torch"),
        shape=SHAPE,
        held_out=({"m": 6, "k": 50, "n": 24},),
        dtype="fp32",
        policy=Policy(verify_limit_s=120, memory_limit_bytes=2**31),
        isolation=isolation(),
        files=files,
        metadata=Metadata.model_validate(described),
        entry_point="matmul",
    )


@pytest.mark.usefixtures("walls", "short_series")
def test_a_kernel_that_leaves_out_the_last_columns_is_refused_at_a_length_of_that_axis() -> None:
    examined = examine(job_of(IN_EIGHTS), progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected)
    assert examined.gates[-1].name == "scales"
    assert examined.verdict.reason.code == "INCORRECT_NUMERICAL"
    counterexample = examined.counterexample
    assert counterexample is not None
    assert counterexample.shape["n"] % 8


@pytest.mark.usefixtures("walls", "short_series")
def test_a_right_kernel_is_accepted_at_every_size_of_a_free_axis() -> None:
    examined = examine(job_of(RIGHT), progress=lambda _: None)
    assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)
    asked = {errors.shape["n"] for errors in examined.workloads}
    assert {1, 2, 17, 1025} <= asked
    assert max(asked) > 2**16


def test_one_column_in_the_public_shape_doesnt_make_a_weak_task() -> None:
    found = admit(OPERATIONS["matmul"], {"m": 8, "k": 64, "n": 1}, "bf16", Policy())
    assert found.survivors == found.refused == ()
