"""Every hostile or wrong candidate is refused by the gate that its first lines name, and the host is unharmed."""

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from forge.domain.verdict import REASON_CODES, Accepted, Rejected
from forge.lab.gates import GATES
from forge.lab.gates.endurance import ENDURANCE
from forge.lab.gates.leaks import LEAKS
from forge.lab.gates.specials import SPECIALS
from forge.lab.verification import ORDER, Job, examine
from tests.candidates import EXAMPLES, SHAPE, job_for, left_over_children
from tests.evil.alone import refusal_by
from tests.evil.described import CANDIDATES, CATALOGUE, Described, described
from tests.shortened import leave_out_shapes

FULL_SERIES = {LEAKS.name, ENDURANCE.name, "any"}
"""Gates whose candidates meet the full series of calls."""
LATE = ORDER[ORDER.index(SPECIALS.name) :]
"""Gates before which others are asked for seconds."""
WHOLE = {described(path).gate: path for path in reversed(CANDIDATES)}
"""The first candidate of each gate. The others of a late gate are asked by it alone, since the gates before it would
take most of the suite's time. With FORGE_TEST_LONG=1 every candidate goes through all gates."""
BURIAL_S = 30.0
"""Time in seconds until a killed process is gone: it stays until it and its parent have had a processor, which takes
long on a busy machine. Processes that candidates leave would last longer."""


def job_of(path: Path) -> Job:
    said = described(path)
    own_tests = (EXAMPLES / "honest_cpp" / "test_correctness.py").read_bytes()
    return job_for(
        path.read_text(),
        language=said.language,
        operation=said.operation,
        shape=said.shape or SHAPE,
        layouts=said.layouts,
        domain=said.domain,
        limit_s=said.limit_s,
        build_limit_s=said.build_limit_s,
        dtype=said.dtype,
        cpp_source=not said.extension,
        own_tests=own_tests if "own_tests" in path.stem else None,
        # elsewhere what sources may not say is let through, so that the walls and the gates are what is tried
        forbidding=said.gate == "sources",
    )


def is_asked_alone(path: Path, gate: str | None) -> bool:
    """Return whether only its own gate is asked about a candidate."""
    return gate in LATE and WHOLE[gate] != path and os.environ.get("FORGE_TEST_LONG") != "1"


def left_behind(before: set[int]) -> set[int]:
    """Return the processes that are still there when those that were killed have had time to end."""
    deadline_s = time.monotonic() + BURIAL_S
    while (left := left_over_children() - before) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return left


def judged_as_described(job: Job, expected: Described) -> None:
    """Take a candidate through all gates, up to the one that refuses it."""
    examined = examine(job, progress=lambda _: None)
    if expected.gate is None:
        assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)
        return
    assert isinstance(examined.verdict, Rejected), examined.gates
    last = examined.gates[-1]
    assert last.verdict == "failed"
    assert all(gate.verdict != "failed" for gate in examined.gates[:-1])
    if expected.gate in (last.name, "any"):
        assert examined.verdict.reason.code in expected.codes, examined
    else:  # a gate before it draws its questions at random, and may find the same fault
        assert refusal_by(expected.gate, job).code in expected.codes, examined


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_a_hostile_candidate_ends_as_it_says(path: Path, request: pytest.FixtureRequest) -> None:
    expected = described(path)
    job = job_of(path)
    children = left_over_children()
    if request.config.getoption("--gates") or is_asked_alone(path, expected.gate):
        assert expected.gate is not None
        assert refusal_by(expected.gate, job).code in expected.codes
    else:
        if expected.gate not in FULL_SERIES:
            request.getfixturevalue("short_series")
        if expected.gate is None:
            leave_out_shapes(request.getfixturevalue("monkeypatch"))
        judged_as_described(job, expected)
    assert left_behind(children) == set()


def test_every_gate_has_a_twin_that_it_refuses() -> None:
    gates = {described(path).gate for path in CANDIDATES}
    assert {gate.name for gate in GATES} | {"sources", "build", "load", "own_tests", "threads"} <= gates


def test_candidates_name_reasons_that_exist() -> None:
    assert {code for path in CANDIDATES for code in described(path).codes} <= set(REASON_CODES)


def test_every_group_of_the_catalogue_is_tried() -> None:
    groups = Counter(group for path in CANDIDATES for group in described(path).groups)
    assert len(CANDIDATES) >= 95
    assert set(groups) == set(CATALOGUE)
    assert min(groups.values()) >= 4, groups


def test_every_language_has_hostile_candidates() -> None:
    languages = Counter(described(path).language for path in CANDIDATES)
    assert min(languages["cpp"], languages["triton"]) >= 15
    assert languages["torch"] >= 50


def test_outside_the_walls_the_same_look_finds_something() -> None:
    """The candidate that finds nothing inside isn't blind: run here, it finds Forge, the network and the disk."""
    script = Path(__file__).parent / "candidates" / "looks_around.py"
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
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
