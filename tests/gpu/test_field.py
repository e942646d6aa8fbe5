"""Kernels in the field's idioms get on a GPU the verdict that they get on a processor."""

from dataclasses import replace
from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.lab.verification import examine
from tests.candidates import SHAPE, job_for
from tests.field.described import CANDIDATES, described
from tests.gpu.place import gpu


@pytest.mark.parametrize(
    "path", [path for path in CANDIDATES if described(path).language == "triton"], ids=lambda path: path.stem
)
def test_a_kernel_of_the_field_gets_its_verdict(path: Path) -> None:
    said = described(path)
    job = job_for(
        path.read_text(),
        language=said.language,
        operation=said.operation,
        dtype=said.dtype,
        shape=said.shape or SHAPE,
        layouts=said.layouts,
        domain=said.domain,
        memory_bytes=2**34,
    )
    examined = examine(replace(job, interpreted=False, device="cuda", gpu=gpu()), progress=lambda _: None)
    if said.gate is None:
        assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log[-2000:])
        return
    assert isinstance(examined.verdict, Rejected), examined.gates
    print(f"{path.stem}: {examined.gates[-1].name} {examined.verdict.reason.code}")
