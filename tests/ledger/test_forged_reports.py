"""The audit finds an event whose report, or whose run's folder, says something else: on the ledger that ships."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from forge.domain.digest import canonical
from forge.ledger.audit.each_ledger import rows_of
from forge.ledger.audit.reports import TYPES, report_problems
from forge.ledger.audit.sealed_files import TYPES as FILE_TYPES
from forge.ledger.audit.sealed_files import sealed_file_problems

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "forge_runs"
OTHER = "ab" * 32
FASTER = {"bound_used": 0.0, "inputs": "normal", "max_relative_error": 0.0}
Rows = list[tuple[int, bytes, bytes]]


def shipped(types: tuple[str, ...]) -> Rows:
    with closing(sqlite3.connect(f"file:{ROOT}/kernel_registry.db?mode=ro&immutable=1", uri=True)) as connection:
        connection.text_factory = bytes
        return list(rows_of(connection, None, types))


@pytest.fixture(scope="module")
def events() -> Rows:
    return shipped(TYPES)


@pytest.fixture(scope="module")
def of_runs() -> Rows:
    return shipped(FILE_TYPES)


def changed(rows: Rows, kind: str, **fields: object) -> Rows:
    """The newest event of a type, with other fields."""
    seq, name, payload = [row for row in rows if row[1] == kind.encode()][-1]
    return [(seq, name, canonical(json.loads(payload) | fields))]


def found(rows: Rows) -> list[str]:
    return [problem.what for problem in report_problems(rows, RUNS)]


def test_every_report_that_ships_says_what_its_event_says(events: Rows) -> None:
    assert {kind.decode() for _, kind, _ in events} == set(TYPES)
    assert found(events) == []


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("CandidateVerified", {"gates": []}, "report.gates"),
    ("CandidateVerified", {"gates_sha256": OTHER}, "report.gates_sha256"),
    ("CandidateVerified", {"attempt": 2}, "report.attempt"),
    ("CandidateVerified", {"candidate": OTHER}, "report.candidate"),
    ("CandidateVerified", {"env_sha256": OTHER}, "report.environment"),
    ("CandidateVerified", {"simulated": True}, "report.simulated"),
    ("CandidateVerified", {"isolation": {"level": "none", "parts": [], "missing": []}}, "report.isolation.level"),
    ("CandidateVerified", {"seeds_sha256": OTHER}, "seeds_sha256"),
    ("CandidateVerified", {"shapes_verified": [{"m": 1}]}, "shapes_verified"),
    ("CandidateVerified", {"workloads": [{**FASTER, "shape": {"m": 1}}]}, "workloads[0]"),
    ("CandidateRejected", {"reason": {"code": "TIMEOUT", "message": "late"}}, "report.verdict.reason.message"),
    ("CandidateRejected", {"stage": "build"}, "report.stage"),
    ("CandidateRejected", {"task_id": "another"}, "report.task_id"),
    ("BenchmarkRecorded", {"task_id": "another"}, "report.task_id"),
    ("BenchmarkRecorded", {"env_sha256": OTHER}, "report.environment"),
    ("BenchmarkRecorded", {"baseline_used": "eager"}, "report.baseline_used"),
    ("BenchmarkFailed", {"reason": {"code": "TOO_SLOW", "message": "slow"}}, "report.reason.message"),
    ("ReplicationRecorded", {"reason": {"code": "NOT_REPLICATED", "message": "no"}}, "report.reason.message"),
    ("ReplicationRecorded", {"comparisons": []}, "report.comparisons"),
    ("ReplicationRecorded", {"workloads": []}, "report.workloads"),
    ("ReplicationRecorded", {"kernel_id": "another_v1"}, "report.kernel_id"),
]


@pytest.mark.parametrize(("kind", "fields", "named"), CASES)
def test_an_event_that_its_report_contradicts_is_found(
    kind: str, fields: dict[str, Any], named: str, events: Rows
) -> None:
    assert named in found(changed(events, kind, **fields))


@pytest.mark.parametrize("kind", ["CandidateVerified", "BenchmarkRecorded", "ReplicationRecorded"])
def test_a_report_of_another_kind_is_a_problem_and_no_crash(kind: str, events: Rows) -> None:
    policy = json.loads(next(payload for _, kind, payload in events if kind == b"BenchmarkRecorded"))["policy_sha256"]
    assert found(changed(events, kind, report_sha256=policy))


def in_folders(rows: Rows) -> Iterator[str]:
    return (problem.what.partition("/")[2] for problem in sealed_file_problems(rows, RUNS))


def test_every_sealed_folder_that_ships_has_the_files_of_its_events(of_runs: Rows) -> None:
    assert {kind.decode() for _, kind, _ in of_runs} == set(FILE_TYPES)
    assert list(in_folders(of_runs)) == []


@pytest.mark.parametrize(
    ("kind", "field", "name"),
    [
        ("PromptRendered", "rendered_sha256", "agent_prompt.md"),
        ("CandidateVerified", "report_sha256", "verification_report.json"),
        ("BenchmarkRecorded", "report_sha256", "benchmark_report.json"),
    ],
)
def test_a_folder_with_another_file_than_its_events_name_is_found(
    kind: str, field: str, name: str, of_runs: Rows
) -> None:
    sealed = {json.loads(payload)["run_id"] for _, type_name, payload in of_runs if type_name == b"RunSealed"}
    rows = list(of_runs)
    place = next(
        at
        for at, (_, type_name, payload) in enumerate(rows)
        if type_name == kind.encode() and json.loads(payload)["run_id"] in sealed
    )
    seq, type_name, payload = rows[place]
    rows[place] = seq, type_name, canonical(json.loads(payload) | {field: OTHER})
    assert list(in_folders(rows)) == [name]


def test_another_source_in_a_folder_than_was_submitted_is_found(of_runs: Rows) -> None:
    rows = list(of_runs)
    place = next(at for at, (_, kind, _) in enumerate(rows) if kind == b"CandidateSubmitted")
    seq, kind, payload = rows[place]
    event = json.loads(payload)
    event["files"]["files"][0]["sha256"] = OTHER
    rows[place] = seq, kind, canonical(event)
    assert list(in_folders(rows)) == [f"candidate/{event['files']['files'][0]['path']}"]
