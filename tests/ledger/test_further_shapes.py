"""The audit finds a further shape whose figures, reason or shape aren't those of its samples, task and rule."""

import copy
from typing import Any

import pytest

from forge.ledger.audit.further_shapes import proven_shapes, shape_differences, unnamed_evidence
from forge.pipeline.samples import render_samples
from forge.pipeline.timings import Measured, workload_timing
from tests.app.prepared import samples

SHAPE = {"batch": 2, "hidden_size": 64}
TASK: dict[str, Any] = {"baseline": "best", "minimum_speedup": 1.1, "further_shapes": [SHAPE]}
TASK |= {"shape": {"batch": 16, "hidden_size": 64}, "target": {"platform": "cpu"}}
POLICY = {"control_half_width": 0.05, "floor_slack": 0.9, "minimum_speedup": 1.1, "confirmation": True}
POLICY |= {"process_pairs": 3, "minimum_isolation": "namespaces"}
OWN = {name: name for name in ("candidate", "task_id", "verified_seq", "env_sha256", "policy_sha256", "run_id")}
OWN |= {"attempt": 1}
WALL = {"level": "namespaces", "parts": [], "missing": []}
VERIFIED = {"isolation": WALL, "shapes_verified": [TASK["shape"], SHAPE]}


def event(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A proven shape, and its samples."""
    import orjson

    measured = Measured(samples=samples(), floor_ns=20_000.0, claims={}, confirmation=samples(candidate_ns=51_000))
    timing = workload_timing(SHAPE, measured, samples_sha256="0" * 64).model_dump(mode="json")
    raw = orjson.loads(render_samples(measured.samples, measured.confirmation))
    facts = {**OWN, "shape": SHAPE, "timing": timing, "baseline_used": "eager", "reason": None, "isolation": WALL}
    return {**facts, "samples_sha256": "0" * 64, **changes}, raw


def fields(found: dict[str, Any], raw: dict[str, Any]) -> set[str]:
    return {path for path, _, _ in shape_differences(found, TASK, POLICY, raw)}


def test_nothing_is_found_where_all_follows_from_the_samples() -> None:
    assert fields(*event()) == set()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reason": {"code": "TOO_SLOW", "message": ""}}, "reason.code"),
        ({"baseline_used": "compile"}, "baseline_used"),
        ({"shape": {"batch": 3, "hidden_size": 64}}, "shape"),
        ({"samples_sha256": "1" * 64}, "samples_sha256"),
        ({"timing": None}, "reason"),
        ({"timing": None, "reason": {"code": "NOISE_TOO_HIGH", "message": ""}}, "timing"),
    ],
)
def test_a_changed_field_is_found(changes: dict[str, Any], field: str) -> None:
    assert field in fields(*event(**changes))


def test_a_changed_figure_is_found() -> None:
    found, raw = event()
    changed = copy.deepcopy(found)
    changed["timing"]["speedups"][0]["interval"]["low"] *= 1.01
    assert fields(changed, raw) == {"timing.speedups[0].interval.low"}


def proven(*named: tuple[str, dict[str, Any]], **policy: Any) -> list[dict[str, Any]]:
    return proven_shapes(TASK, OWN, named, {**POLICY, **policy}, VERIFIED)


def test_only_proven_shapes_of_the_benchmarks_own_candidate_are_promoted() -> None:
    found, _ = event()
    slow = {**found, "reason": {"code": "TOO_SLOW", "message": ""}}
    unconfirmed = {**found, "timing": {**found["timing"], "confirmation": None}}
    assert proven(*(("ShapeTimed", one) for one in (found, slow, unconfirmed))) == [SHAPE]
    for kind, other in (
        ("ShapeTimed", {**found, "candidate": "another"}),
        ("ShapeTimed", {**found, "attempt": 2}),
        ("ShapeTimed", {**found, "run_id": "another"}),
        ("BaselineRecorded", found),
    ):
        with pytest.raises(ValueError, match="no measurement of the benchmark's candidate"):
            proven((kind, other))


@pytest.mark.parametrize(
    "policy",
    [
        {"process_pairs": 4},
        {"minimum_speedup": 1.99},
        {"control_half_width": -0.01},
        {"floor_slack": 3.0},
    ],
)
def test_a_shape_is_proven_by_every_rule_of_the_first_one(policy: dict[str, Any]) -> None:
    assert proven(("ShapeTimed", event()[0])) == [SHAPE]
    assert proven(("ShapeTimed", event()[0]), **policy) == []


def test_a_shape_that_a_guest_without_walls_timed_is_not_proven() -> None:
    assert proven(("ShapeTimed", event(isolation={**WALL, "level": "none"})[0])) == []


def test_each_further_shape_has_one_event_and_a_verification() -> None:
    named = ("ShapeTimed", event()[0])
    assert list(unnamed_evidence(TASK, [named], VERIFIED)) == []
    for further in ([], [named, named]):
        assert [path for path, _, _ in unnamed_evidence(TASK, further, VERIFIED)] == ["further_seqs"]
    unverified = {**VERIFIED, "shapes_verified": [TASK["shape"]]}
    assert [path for path, _, _ in unnamed_evidence(TASK, [named], unverified)] == ["promotion rule 'verified shape'"]
