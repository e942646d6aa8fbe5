"""Kernels with domains on the GPU: whole tiles of tensor cores, and offsets in 32 bits past 2^31 elements."""

from dataclasses import replace
from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.lab.verification import examine
from tests.candidates import SHAPE, job_for
from tests.field.described import described
from tests.gpu.place import gpu

CANDIDATES = sorted((Path(__file__).parent / "domains").glob("*.py"))


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_a_kernel_with_a_domain_gets_its_verdict(path: Path) -> None:
    said = described(path)
    job = job_for(
        path.read_text(),
        language=said.language,
        operation=said.operation,
        dtype=said.dtype,
        shape=said.shape or SHAPE,
        domain=said.domain,
        limit_s=300.0,
        memory_bytes=2**36,
    )
    examined = examine(replace(job, device="cuda", gpu=gpu(), interpreted=False), progress=lambda _: None)
    if said.gate is None:
        assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.gates, examined.log[-2000:])
    else:
        assert isinstance(examined.verdict, Rejected), examined.gates
        assert said.gate in (examined.gates[-1].name, "any"), examined.verdict
        assert examined.verdict.reason.code in said.codes, examined.verdict
