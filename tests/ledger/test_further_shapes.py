"""The audit finds a further shape whose figures, reason or shape aren't those of its samples, task and rule."""

import copy
from typing import Any

import pytest

from forge.ledger.audit.further_shapes import proven_shapes, shape_differences
from forge.pipeline.samples import render_samples
from forge.pipeline.timings import Measured, workload_timing
from tests.app.prepared import samples

SHAPE = {"batch": 2, "hidden_size": 64}
TASK = {"baseline": "best", "minimum_speedup": 1.1, "further_shapes": [SHAPE]}
POLICY = {"control_half_width": 0.05, "floor_slack": 0.9, "minimum_speedup": 1.1, "confirmation": True}
OWN = {name: name for name in ("candidate", "task_id", "verified_seq", "env_sha256", "policy_sha256")}


def event(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A proven shape, and its samples."""
    import orjson

    measured = Measured(samples=samples(), floor_ns=20_000.0, claims={}, confirmation=samples(candidate_ns=51_000))
    timing = workload_timing(SHAPE, measured, samples_sha256="0" * 64).model_dump(mode="json")
    raw = orjson.loads(render_samples(measured.samples, measured.confirmation))
    facts = {**OWN, "shape": SHAPE, "timing": timing, "baseline_used": "eager", "reason": None}
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
    ],
)
def test_a_changed_field_is_found(changes: dict[str, Any], field: str) -> None:
    assert field in fields(*event(**changes))


def test_a_changed_figure_is_found() -> None:
    found, raw = event()
    changed = copy.deepcopy(found)
    changed["timing"]["speedups"][0]["interval"]["low"] *= 1.01
    assert fields(changed, raw) == {"timing.speedups[0].interval.low"}


def test_only_proven_shapes_of_the_benchmarks_own_candidate_are_promoted() -> None:
    found, _ = event()
    slow = {**found, "reason": {"code": "TOO_SLOW", "message": ""}}
    unconfirmed = {**found, "timing": {**found["timing"], "confirmation": None}}
    named = [("ShapeTimed", one) for one in (found, slow, unconfirmed)]
    assert proven_shapes(OWN, named, POLICY) == [SHAPE]
    for kind, other in (("ShapeTimed", {**found, "candidate": "another"}), ("BaselineRecorded", found)):
        with pytest.raises(ValueError, match="no measurement of the benchmark's candidate"):
            proven_shapes(OWN, [(kind, other)], POLICY)
