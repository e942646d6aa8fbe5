"""Kernels written in the field's idioms get the verdict that their first lines name."""

from pathlib import Path

import pytest

from forge.domain.verdict import REASON_CODES, Accepted, Rejected
from forge.lab.gates.endurance import ENDURANCE
from forge.lab.gates.leaks import LEAKS
from forge.lab.verification import examine
from tests.candidates import SHAPE, job_for
from tests.field.described import CANDIDATES, described

FULL_SERIES = {LEAKS.name, ENDURANCE.name, "any", None}
"""Gates whose kernels meet the full series of calls; None stands for kernels that must be accepted."""
LIMIT_S = 300.0
"""Seconds that a verification may take: far more than it needs, since a busy machine is no reason to refuse."""


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_a_kernel_of_the_field_gets_its_verdict(path: Path, request: pytest.FixtureRequest) -> None:
    said = described(path)
    if said.gate not in FULL_SERIES:
        request.getfixturevalue("short_series")
    job = job_for(
        path.read_text(),
        language=said.language,
        operation=said.operation,
        dtype=said.dtype,
        shape=said.shape or SHAPE,
        layouts=said.layouts,
        domain=said.domain,
        limit_s=LIMIT_S,
    )
    examined = examine(job, progress=lambda _: None)
    if said.gate is None:
        assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log[-2000:])
    else:
        assert isinstance(examined.verdict, Rejected), examined.gates
        assert said.gate in (examined.gates[-1].name, "any"), examined.verdict
        assert examined.verdict.reason.code in said.codes, examined.verdict


def test_there_are_enough_idioms() -> None:
    assert len(CANDIDATES) >= 30
    assert sum(described(path).gate is None for path in CANDIDATES) >= 15


def test_every_right_kernel_has_a_wrong_twin() -> None:
    saids = {path.stem: described(path) for path in CANDIDATES}
    right = {name for name, said in saids.items() if said.gate is None}
    assert right == {said.twin_of for said in saids.values() if said.gate is not None}


def test_the_codes_exist() -> None:
    assert {code for said in map(described, CANDIDATES) if said.gate is not None for code in said.codes} <= set(
        REASON_CODES
    )
