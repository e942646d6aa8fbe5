"""CUDA C++ on the GPU, through the same host code as the other languages."""

from dataclasses import replace
from pathlib import Path

import pytest

from forge.domain.tensors import DType
from forge.domain.verdict import Accepted, Rejected
from forge.lab.job import Job
from forge.lab.verification import examine
from tests.candidates import job_for, left_over_children
from tests.evil.described import described
from tests.gpu.place import gpu

HONEST = Path(__file__).parent / "cuda" / "honest.py"
CANDIDATES = sorted(set((Path(__file__).parent / "cuda").glob("*.py")) - {HONEST})


def on_the_gpu(path: Path, *, dtype: DType = "fp32") -> Job:
    job = job_for(path.read_text(), language="cuda", dtype=dtype, limit_s=120.0, memory_bytes=2**34)
    return replace(job, device="cuda", gpu=gpu())


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_an_honest_kernel_is_accepted(dtype: DType) -> None:
    examined = examine(on_the_gpu(HONEST, dtype=dtype), progress=lambda _: None)
    assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)
    assert {Path(file.name).suffix for file in examined.artifact} == {".so", ".cubin", ".json"}
    assert "sanitizer" in [gate.name for gate in examined.gates]


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_a_wrong_kernel_ends_as_it_says(path: Path) -> None:
    said = described(path)
    children = left_over_children()
    examined = examine(on_the_gpu(path), progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected), examined.gates
    assert said.gate in (examined.gates[-1].name, "any"), examined.gates[-1]
    assert examined.verdict.reason.code in said.codes, examined.verdict
    assert left_over_children() <= children
