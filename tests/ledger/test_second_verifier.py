"""A ledger can be read without Forge: a second verifier, written from two pages alone, reads the one that ships."""

import hashlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.digest import canonical
from tests.ledger.forging import forge
from tests.second_verifier import numbers_again, promotions_again
from tests.second_verifier.canonical import canonical as canonical_by_the_page
from tests.shipped import copy_shipped_ledger

ROOT = Path(__file__).parents[2]
READER = ROOT / "tests" / "second_verifier"
SHIPPED = {
    "events": 4006,
    "notes": 222,
    "runs": 179,
    "files": 2051,
    "digests": 481,
    "benchmarks": 183,
    "promotions": 100,
    "decisions": 160,
    "models": 23,
}
"""What the ledger that ships holds; blobs are counted by the reader."""


def read(home: Path) -> dict[str, Any]:
    """What the second verifier says, in a process that has the standard library and its own files only."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(READER), str(home)], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == bool(said["faults"])
    return said


def test_the_ledger_that_ships_is_derived_again_without_forge() -> None:
    said = read(ROOT)
    assert said["faults"] == []
    assert SHIPPED.items() <= said["counts"].items()
    own = {path.stem for path in READER.glob("*.py")}
    roots = {name.partition(".")[0] for name in said["modules"]}
    assert roots <= sys.stdlib_module_names | own, "neither Forge nor a library"


def test_a_promotion_of_1_62x_turned_into_9_62x_is_found(tmp_path: Path) -> None:
    copy_shipped_ledger(tmp_path)
    old, new = "1.6232663937417076", "9.623266393741707"
    forge(tmp_path / "kernel_registry.db", lambda seq, _, text: text.replace(old, new) if seq >= 755 else text)
    (fault,) = read(tmp_path)["faults"]
    assert fault[:2] == [755, "confirmation speedup over compile ratio"]


Events = list[tuple[int, str, Any]]
OTHER = "ab" * 32


@pytest.fixture(scope="module")
def rows() -> list[tuple[int, str, bytes]]:
    with closing(sqlite3.connect(f"file:{ROOT}/kernel_registry.db?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute("SELECT seq, type, payload FROM event ORDER BY seq").fetchall()


@pytest.fixture
def shipped(rows: list[tuple[int, str, bytes]]) -> Events:
    """The shipped events, of which a test may change what it likes."""
    return [(seq, kind, json.loads(payload)) for seq, kind, payload in rows]


def promotion_at(events: Events, place: int) -> Any:
    return [event for _, kind, event in events if kind == "KernelPromoted"][place]


def evidence(events: Events, field: str) -> Any:
    """The verification or the benchmark of the last promotion."""
    return events[promotion_at(events, -1)[field] - 1][2]


def set_in(place: int, **fields: object) -> Callable[[Events], object]:
    return lambda events: promotion_at(events, place).update(fields)


def judged(**fields: object) -> Callable[[Events], object]:
    return lambda events: evidence(events, "verified_seq").update(fields)


def other_bytes(events: Events) -> None:
    """The promotion offers the author's benchmark in the place of the kernel."""
    files = {file["path"]: file for file in promotion_at(events, -1)["files"]}
    files["kernel.py"]["sha256"] = files["bench.py"]["sha256"]


def on_another_gpu(field: str) -> Callable[[Events], object]:
    """The machine of the last promotion's evidence has another GPU, under the same digests."""

    def act(events: Events) -> None:
        named = evidence(events, field)["env_sha256"]
        for _, kind, event in events:
            if kind == "EnvironmentCaptured" and event["env_sha256"] == named:
                event["environment"]["gpu"]["slug"] = "another"

    return act


def again(events: Events) -> None:
    """A second promotion on the same evidence, under the next number."""
    last = deepcopy(promotion_at(events, -1))
    last |= {"version": last["version"] + 1, "kernel_id": f"{last['family']}_v{last['version'] + 1}"}
    events.append((len(events) + 1, "KernelPromoted", last))


def added(kind: str, **fields: object) -> Callable[[Events], object]:
    def act(events: Events) -> None:
        own = {name: promotion_at(events, -1)[name] for name in ("kernel_id", "family", "candidate")}
        events.append((len(events) + 1, kind, own | fields))

    return act


def failed_gate(events: Events) -> None:
    promotion_at(events, -1)["gates"][0]["verdict"] = "failed"


FORGED: dict[str, tuple[Callable[[Events], object], str]] = {
    "other bytes": (other_bytes, "candidate of its files"),
    "another entry point": (set_in(-1, entry_point="main"), "candidate of its files"),
    "another candidate": (set_in(-1, candidate=OTHER), "candidate of the evidence"),
    "another author": (set_in(-1, author="eve"), "author and skills"),
    "other skills": (set_in(-1, skills=[]), "author and skills"),
    "another run": (set_in(-1, run_id="another"), "run_id of the evidence"),
    "another policy": (set_in(-1, policy_sha256=OTHER), "policy_sha256 of the evidence"),
    "another artifact": (set_in(-1, artifact_sha256=OTHER), "artifact"),
    "another machine": (set_in(-1, env_sha256=OTHER), "machine"),
    "another machine's times": (set_in(-1, perf_key=OTHER), "perf_key"),
    "another machine's software": (set_in(-1, abi_key=OTHER), "abi_key"),
    "another domain": (set_in(-1, domain={"axes": {}}), "domain"),
    "another family": (set_in(-1, family="another"), "family"),
    "a version left out": (set_in(-1, version=99), "version"),
    "coverage beyond what was verified": (
        set_in(-1, coverage={"verified": [{"batch": 9}], "measured": []}),
        "coverage.verified",
    ),
    "coverage beyond what was measured": (
        set_in(-1, coverage={"verified": [], "measured": [{"batch": 9}]}),
        "coverage.measured",
    ),
    "evidence that doesn't exist": (set_in(-1, benchmark_seq=99_999), "evidence"),
    "evidence of another type": (set_in(-1, verified_seq=1), "evidence"),
    "an easier task": (lambda events: promotion_at(events, -1)["task"].update(minimum_speedup=0.5), "task"),
    "a second one on the same evidence": (again, "run decided once"),
    "a gate that failed": (failed_gate, "gates"),
    "a substitute for the target": (judged(simulated=True), "simulated"),
    "a reused judgement that is none": (judged(reused_seq=3), "reused judgement"),
    "an unknown machine that judged": (judged(env_sha256=OTHER), "judged on a machine"),
    "a successor that doesn't exist": (added("KernelDeprecated", superseded_by="another_v1"), "superseded_by"),
    "a revocation of no kernel": (added("KernelRevoked", kernel_id="another_v1"), "kernel"),
    "a verification on another GPU": (on_another_gpu("verified_seq"), "GPU of the task"),
    "a benchmark on another GPU": (on_another_gpu("benchmark_seq"), "GPU of the task"),
    "a replication of another measurement": (added("ReplicationRecorded", benchmark_seq=3), "benchmark_seq"),
    "a withdrawal of no benchmark": (added("BenchmarkInvalidated", benchmark_seq=3), "benchmark_seq"),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_promotion_of_something_else_than_its_evidence_is_found(case: str, shipped: Events) -> None:
    change, name = FORGED[case]
    faults = list[list[object]]()
    promotions_again.check(shipped, faults, digest_by_the_page)
    assert faults == []
    change(shipped)
    promotions_again.check(shipped, faults, digest_by_the_page)
    assert name in [fault[1] for fault in faults], faults


def test_a_benchmark_whose_baselines_were_left_out_is_found(shipped: Events) -> None:
    tasks = [one for one in shipped if one[1] == "TaskCreated"]
    last = next(one for one in reversed(shipped) if one[1] == "BenchmarkRecorded")
    faults = list[list[object]]()
    numbers_again.check(ROOT, [*tasks, last], faults)
    assert faults == [[last[0], "missing", repr(last[2]["run_id"]), ""]]


def digest_by_the_page(value: object) -> str:
    return hashlib.sha256(canonical_by_the_page(value)).hexdigest()


def test_a_forged_ledger_of_which_every_hash_is_right_is_found_by_its_promotion(tmp_path: Path) -> None:
    copy_shipped_ledger(tmp_path)
    old, new = '"author":"forge examples"', '"author":"forge exemplar"'
    forge(tmp_path / "kernel_registry.db", lambda seq, _, text: text.replace(old, new) if seq == 2120 else text)
    assert [fault[:2] for fault in read(tmp_path)["faults"]] == [[2120, "author and skills"]]


def test_a_page_lists_what_the_reader_takes_for_stored_bytes() -> None:
    page = (ROOT / "docs" / "reference" / "blobs.md").read_text()
    reader = (READER / "__main__.py").read_text()
    table = reader.partition("BLOBS = ")[2].partition("}\n")[0] + "}"
    listed = {row.split(" | ")[0].strip("| ") for row in page.splitlines() if row.startswith("| ") and "`" in row}
    assert listed - {"KernelRevoked"} == {line.split('"')[1] for line in table.splitlines() if ":" in line}


@given(
    st.dictionaries(
        st.text(), st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53) | st.text()
    )
)
def test_the_page_spells_values_as_the_writer_does(value: dict[str, object]) -> None:
    assert canonical_by_the_page(value) == canonical(value)


def test_small_and_large_numbers_are_spelled_as_the_page_says() -> None:
    numbers = [0.0001, 0.00001, 9.8e-5, 1e-6, 9.8e-7, 1e15, 1e16, 1.5e300, 5.0, -1e-5, -0.0]
    assert canonical_by_the_page(numbers) == canonical(numbers)  # type: ignore[arg-type]  # a list of JSON
