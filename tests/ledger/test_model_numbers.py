"""The audit finds a measurement of a model whose figures aren't those of its samples, on the ledger that ships."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from forge.domain.digest import canonical
from forge.ledger.audit.each_ledger import rows_of
from forge.ledger.audit.models import TYPES, ModelNumbers
from tests.ledger.forging import forge
from tests.ledger.test_numbers import verified
from tests.ledger.test_second_verifier import read
from tests.shipped import copy_shipped_ledger

ROOT = Path(__file__).parents[2]
SLOWER = '"speedup":{"high":0.7288855600821846,"low":0.7225401963490039,"ratio":0.725705942994637}'
FASTER = '"speedup":{"high":1.28,"low":1.27,"ratio":1.275}'
PROMOTED = "triton_rmsnorm_h200_bf16_b16_h4096_v1"


@pytest.fixture(scope="module")
def rows() -> list[tuple[int, bytes, bytes]]:
    path = f"file:{ROOT}/kernel_registry.db?mode=ro&immutable=1"
    with closing(sqlite3.connect(path, uri=True)) as connection:
        connection.text_factory = bytes
        found = list(rows_of(connection, None, TYPES))
    newest = max(place for place, (_, kind, text) in enumerate(found) if kind == b"ModelMeasured" and _decides(text))
    return found[: newest + 1]


def _decides(payload: bytes) -> bool:
    decides: bool = json.loads(payload)["conclusive"]
    return decides


def found(rows: list[tuple[int, bytes, bytes]]) -> list[str]:
    return [problem.what for problem in ModelNumbers(ROOT / "forge_runs").problems(rows)]


def changed(rows: list[tuple[int, bytes, bytes]], **fields: Any) -> list[tuple[int, bytes, bytes]]:
    """Other fields in the newest measurement that decides something, or in its comparison."""
    seq, kind, payload = rows[-1]
    event = json.loads(payload)
    for name, value in fields.items():
        (event["comparison"] if name in event["comparison"] else event)[name] = value
    return [*rows[:-1], (seq, kind, canonical(event))]


def use(**fields: object) -> list[dict[str, object]]:
    return [{"op": "rmsnorm", "backend": "plan", "kernel_id": PROMOTED, "sha256": "ab" * 32, **fields}]


def test_the_measurements_that_ship_follow_from_their_samples(rows: list[tuple[int, bytes, bytes]]) -> None:
    assert sum(kind == b"ModelMeasured" for _, kind, _ in rows) >= 9
    assert found(rows) == []
    assert found(changed(rows)) == []


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("speedup", {"ratio": 1.275, "low": 1.27, "high": 1.28}, "comparison.speedup.ratio"),
        ("control", {"ratio": 1.0, "low": 0.999, "high": 1.001}, "comparison.control.low"),
        ("own_median_ns", 1.0, "comparison.own_median_ns"),
        ("adopted_median_ns", 1.0, "comparison.adopted_median_ns"),
        ("own_error", 0.0, "comparison.own_error"),
        ("adopted_error", 0.0, "comparison.adopted_error"),
        ("equal_tokens", 63, "comparison.equal_tokens"),
        ("replaced_share", 0.5, "comparison.replaced_share"),
        ("conclusive", False, "conclusive"),
        ("process_pairs", 6, "process_pairs"),
        ("rounds", 65, "rounds"),
        ("generation", "ab" * 32, "generation"),
        ("config_sha256", "ab" * 32, "config_sha256"),
        ("gpu", "h200", "gpu"),
        ("uses", [], "uses"),
        ("uses", use(), "uses[0].kernel_id"),
        ("uses", use(kernel_id="another_v1"), "uses[0].kernel_id"),
    ],
)
def test_each_figure_is_derived(field: str, value: object, named: str, rows: list[tuple[int, bytes, bytes]]) -> None:
    assert named in found(changed(rows, **{field: value}))


def test_uneven_samples_are_a_problem_and_no_crash(rows: list[tuple[int, bytes, bytes]]) -> None:
    assert found(changed(rows, samples_sha256=json.loads(rows[-1][2])["policy_sha256"])) == ["numbers"]


@pytest.mark.slow
def test_a_model_made_faster_in_the_ledger_is_found_by_both_verifiers(tmp_path: Path) -> None:
    home = copy_shipped_ledger(tmp_path)
    forge(home / "kernel_registry.db", lambda _, __, payload: payload.replace(SLOWER, FASTER))
    assert verified(home, full=False).ok, "the forgery itself is sound: chain, tree, signatures, blobs"
    assert {problem.what for problem in verified(home).problems} == {
        f"comparison.speedup.{name}" for name in ("ratio", "low", "high")
    }
    assert {fault[1] for fault in read(home)["faults"]} == {f"speedup {name}" for name in ("ratio", "low", "high")}
