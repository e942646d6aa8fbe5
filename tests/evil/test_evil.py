"""Every hostile or wrong candidate is refused by the gate that its first lines name, and the host is unharmed."""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from forge.domain.verdict import REASON_CODES, Accepted, Rejected
from forge.lab.examine import examine
from forge.lab.gates import GATES
from tests.candidates import EXAMPLES, NO_TESTS, job_for, left_over_children

CANDIDATES = sorted((Path(__file__).parent / "candidates").glob("*.py"))
GRACE_S = 5.0
LIMIT_S = 25.0


@dataclass(frozen=True)
class Expected:
    """What a candidate's first lines promise."""

    gate: str | None
    """None where it must be accepted; "any" where a race decides which call is the first to show it."""
    codes: tuple[str, ...]
    """More than one where a race decides which comes first."""
    language: str
    limit_s: float


def expected_of(path: Path) -> Expected:
    text = path.read_text().split('"""')[1]
    fields = dict(re.findall(r"^(Refused by|Accepted|Language|Limit): (.+)$", text, re.MULTILINE))
    gate, _, codes = fields["Refused by"].partition(" ") if "Refused by" in fields else (None, "", "")
    assert (gate is None) == ("Accepted" in fields), f"{path.name} must say one of both"
    limit_s = float(fields.get("Limit", f"{LIMIT_S} s").removesuffix(" s"))
    return Expected(gate, tuple(codes.split(" or ")) if codes else (), fields.get("Language", "torch"), limit_s)


def own_tests(path: Path) -> bytes:
    return (EXAMPLES / "honest_cpp" / "test_correctness.py").read_bytes() if "own_tests" in path.stem else NO_TESTS


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_a_hostile_candidate_ends_as_it_says(path: Path) -> None:
    expected = expected_of(path)
    job = job_for(path.read_text(), language=expected.language, limit_s=expected.limit_s, own_tests=own_tests(path))
    children = left_over_children()
    began_s = time.monotonic()
    examined = examine(job, progress=lambda _: None)
    took_s = time.monotonic() - began_s
    if expected.gate is None:
        assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)
    else:
        assert isinstance(examined.verdict, Rejected), examined.gates
        last = examined.gates[-1]
        assert expected.gate in (last.name, "any"), examined
        assert examined.verdict.reason.code in expected.codes, examined
        assert last.verdict == "failed"
        assert all(gate.verdict == "passed" for gate in examined.gates[:-1])
    assert took_s < expected.limit_s + GRACE_S
    assert left_over_children() == children


def test_every_gate_has_a_twin_that_it_refuses() -> None:
    gates = {expected_of(path).gate for path in CANDIDATES}
    assert {gate.name for gate in GATES} | {"sources", "build", "load", "own_tests"} <= gates


def test_candidates_name_reasons_that_exist() -> None:
    assert {code for path in CANDIDATES for code in expected_of(path).codes} <= set(REASON_CODES)


def test_outside_the_walls_the_same_look_finds_something() -> None:
    """The candidate that finds nothing inside isn't blind: run here, it finds Forge, the network and the disk."""
    script = Path(__file__).parent / "candidates" / "looks_around.py"
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert {
        "forge",
        "forge.lab",
        "network",
        "root directory",
        "a place among its own files",
        "other processes",
    } <= set(done.stdout.splitlines())
