"""Each gate is one question with a name, a twin that it refuses, and a threshold that it states."""

import re
from pathlib import Path

import pytest

from forge.lab.gates import GATES

EVIL = Path(__file__).parents[1] / "evil" / "candidates"


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_a_gate_has_an_evil_twin(gate: object) -> None:
    refusals = [re.findall(r"^Refused by: (\w+) ", path.read_text(), re.MULTILINE) for path in EVIL.glob("*.py")]
    assert [gate.name] in refusals


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_a_gate_lives_in_a_file_of_its_name(gate: object) -> None:
    assert gate.examine.__module__ == f"forge.lab.gates.{gate.name}"


def test_gates_have_different_names() -> None:
    assert len({gate.name for gate in GATES}) == len(GATES)
