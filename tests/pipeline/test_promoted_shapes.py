"""Each further shape is promoted on its own evidence, and on none of another candidate, task, machine or policy."""

from typing import Any

import pytest

from forge.domain.digest import sha256
from forge.domain.target import Target
from forge.domain.verdict import Reason
from forge.events import KernelPromoted, PromotionDenied, ShapeTimed
from forge.pipeline.promote import PromotionEvidence, promote
from forge.pipeline.promotion_rule import against_shape
from tests.pipeline.making import POLICY, WALL, case, confirmed, in_cache, made, recorded, timing

SMALL = {"batch": 2, "hidden_size": 64}
TASK = made(further_shapes=("batch=2,hidden_size=64",))
OTHER = sha256(b"another")


def several(*, named: tuple[int, ...] = (11,), **changes: Any) -> PromotionEvidence:
    """A case of a task with one further shape, proven there too but for what is changed."""
    judged = {"task_id": TASK.task_id, "shapes_verified": (TASK.shape, SMALL)}
    plain = case(task=TASK, verified=judged, benchmark={"task_id": TASK.task_id, "further_seqs": named})
    benchmark = plain.benchmark.event
    own = ("run_id", "task_id", "candidate", "attempt", "env_sha256", "verified_seq", "policy_sha256")
    facts = {name: getattr(benchmark, name) for name in own}
    facts |= {"shape": SMALL, "timing": timing(shape=SMALL), "baseline_used": "eager", "reason": None}
    facts |= {"samples_sha256": OTHER, "isolation": WALL, "process_sha256": None, **changes}
    return case(
        task=TASK,
        verified=judged,
        benchmark={"task_id": TASK.task_id, "further_seqs": named},
        further=(recorded(ShapeTimed.model_validate(facts), 11),),
    )


def test_a_shape_at_which_the_rule_holds_is_promoted_too() -> None:
    kernel = promote(several(), earlier_versions=0)
    assert isinstance(kernel, KernelPromoted)
    assert kernel.coverage.measured == (TASK.shape, SMALL)
    assert kernel.gates[-1].observed == "batch=2,hidden_size=64 proven"


SLOW = Reason(code="TOO_SLOW", message="1.02x over eager")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"reason": SLOW}, "TOO_SLOW"),
        ({"timing": None, "reason": Reason(code="CLOCKS_UNSTABLE", message="they moved")}, "CLOCKS_UNSTABLE"),
        ({"timing": None}, "INFRASTRUCTURE"),
        ({"timing": timing(shape=SMALL, low=1.05, high=1.09)}, "TOO_SLOW"),
        ({"timing": timing(shape=SMALL, low=1.05)}, "NOISE_TOO_HIGH"),
        ({"timing": timing(shape=SMALL, pairs_lost=1)}, "TOO_SLOW"),
        ({"timing": timing(shape=SMALL, process_pairs=4)}, "NOISE_TOO_HIGH"),
        ({"timing": timing(shape=SMALL, control=(0.94, 1.0))}, "NOISE_TOO_HIGH"),
        ({"timing": timing(shape=SMALL, p90_ns=484.0)}, "BELOW_FLOOR"),
        ({"timing": timing(shape=SMALL, confirmation=None)}, "TOO_SLOW"),
        ({"timing": timing(shape=SMALL, confirmation=confirmed(low=0.9))}, "TOO_SLOW"),
        ({"timing": timing(shape=SMALL, residency=in_cache(low=0.9))}, "TOO_SLOW"),
        ({"baseline_used": "compile"}, "INFRASTRUCTURE"),
    ],
)
def test_a_shape_at_which_the_rule_does_not_hold_is_left_out_and_the_kernel_is_promoted(
    changes: dict[str, Any], code: str
) -> None:
    kernel = promote(several(**changes), earlier_versions=0)
    assert isinstance(kernel, KernelPromoted)
    assert kernel.coverage.measured == (TASK.shape,)
    assert kernel.gates[-1].observed == f"batch=2,hidden_size=64 {code}"


@pytest.mark.parametrize(
    "changes",
    [
        {"candidate": OTHER},
        {"task_id": "another"},
        {"verified_seq": 9},
        {"env_sha256": OTHER},
        {"policy_sha256": OTHER},
        {"shape": {"batch": 3, "hidden_size": 64}},
        {"timing": timing(shape={"batch": 3, "hidden_size": 64})},
        {"isolation": WALL.model_copy(update={"level": "none"})},
        {"named": ()},
        {"named": (9,)},
    ],
)
def test_evidence_of_something_else_promotes_nothing(changes: dict[str, Any]) -> None:
    denied = promote(several(**changes), earlier_versions=0)
    assert isinstance(denied, PromotionDenied)
    assert denied.reason.message.startswith("further shapes: ")


def test_a_further_shape_that_was_not_timed_or_not_verified_promotes_nothing() -> None:
    found = several()
    judged = {"task_id": TASK.task_id}
    bench = {"task_id": TASK.task_id, "further_seqs": (11,)}
    unverified = case(task=TASK, verified=judged, benchmark=bench, further=found.further)
    untimed = case(task=TASK, verified={**judged, "shapes_verified": (TASK.shape, SMALL)}, benchmark=judged)
    for denied in (promote(one, earlier_versions=0) for one in (unverified, untimed)):
        assert isinstance(denied, PromotionDenied)
        assert denied.reason.message.startswith("further shapes: ")


def test_times_by_a_weaker_clock_than_the_task_asks_for_do_not_count() -> None:
    event = several().further[0].event
    on_gpu = TASK.model_copy(update={"target": Target(platform="cuda", gpu="h200")})
    assert against_shape(event, TASK, POLICY) is None
    assert against_shape(event, on_gpu, POLICY) == "CLOCK_DISAGREES"


def test_a_shape_needs_a_confirmation_only_if_the_policy_asks_for_one() -> None:
    event = several(timing=timing(shape=SMALL, confirmation=None)).further[0].event
    assert against_shape(event, TASK, POLICY) == "TOO_SLOW"
    assert against_shape(event, TASK, POLICY.model_copy(update={"confirmation": False})) is None
