"""Triton on the GPU, through the same host code as on a CPU: wrong kernels are refused, honest ones aren't."""

from dataclasses import replace
from pathlib import Path

import pytest

from forge.domain.tensors import DType
from forge.domain.verdict import Accepted, Rejected
from forge.lab.job import Job
from forge.lab.verification import examine
from tests.candidates import EXAMPLES, job_for, left_over_children
from tests.evil.described import described
from tests.gpu.place import gpu

CANDIDATES = sorted((Path(__file__).parent / "candidates").glob("*.py"))
HONEST = (EXAMPLES / "honest_triton" / "kernel.py").read_text()


def on_the_gpu(kernel: str, *, dtype: DType = "fp32", limit_s: float = 120.0) -> Job:
    own_tests = b"def test_nothing_is_claimed():\n    pass\n"
    job = job_for(kernel, language="triton", dtype=dtype, limit_s=limit_s, memory_bytes=2**34, own_tests=own_tests)
    return replace(job, interpreted=False, device="cuda", gpu=gpu())


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_an_honest_kernel_is_accepted(dtype: DType) -> None:
    examined = examine(on_the_gpu(HONEST, dtype=dtype), progress=lambda _: None)
    assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)
    assert "sanitizer" in [gate.name for gate in examined.gates]


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_a_wrong_kernel_ends_as_it_says(path: Path) -> None:
    said = described(path)
    children = left_over_children()
    limit_s = said.limit_s if "TIMEOUT" in said.codes else 120.0
    examined = examine(on_the_gpu(path.read_text(), limit_s=limit_s), progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected), examined.gates
    assert said.gate in (examined.gates[-1].name, "any"), examined.gates[-1]
    assert examined.verdict.reason.code in said.codes, examined.verdict
    assert left_over_children() <= children
