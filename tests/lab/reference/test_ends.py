"""A kernel that is wrong only at an end of a range of its reference's own inputs is refused."""

import re
from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from forge.lab.reference.infer import Inferred
from forge.sandbox.isolation import Walls
from tests.lab.reference.ends import EXAMPLES
from tests.lab.reference.references import ask, job_against


def verdict_on(found: Inferred, kernel: str, folder: Path) -> Accepted | Rejected:
    """The verdict on the last function of a kernel."""
    name = re.findall(r"^def (\w+)", kernel, re.MULTILINE)[-1]
    executor = LocalExecutor(folder / "lock")
    return executor.examine(job_against(found, kernel, name), progress=lambda _: None).verdict


@pytest.mark.usefixtures("short_series")
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_kernel_that_is_wrong_at_an_end_of_a_range_is_refused_and_a_right_one_accepted(
    name: str, tmp_path: Path, walls: Walls
) -> None:
    example = EXAMPLES[name]
    found = ask(example.source)
    assert (found.admission.survivors, found.admission.refused) == ((), ())
    assert "ends" in found.contract.kinds
    assert verdict_on(found, example.right_kernel, tmp_path) == Accepted()
    for wrong in example.wrong_kernels:
        assert isinstance(verdict_on(found, wrong, tmp_path), Rejected), wrong
