"""The audit finds an early stop that its one process pair doesn't give, whatever else the event says."""

import copy
from typing import Any

import orjson
import pytest

from forge.domain.early_stop import LIMIT
from forge.ledger.audit.early_stop import stop_differences
from forge.pipeline.early_stop import early_stop
from forge.pipeline.samples import Samples, render_samples
from tests.app.prepared import samples
from tests.pipeline.test_decide import TASK

AUDITED = TASK.model_dump(mode="json")
POLICY = {"rounds": 4, "replay_rounds": 24}


def stopped(candidate_ns: float = 250_000) -> tuple[dict[str, Any], dict[str, Any]]:
    """A stop with its samples, as the ledger and the store have them."""
    taken = samples(candidate_ns=candidate_ns, pairs=1)
    figures = early_stop(TASK, taken.attempts[0])  # type: ignore[arg-type]  # a slope's
    assert figures is not None
    event = {"reason": {"code": "TOO_SLOW"}, "baseline_used": "eager", "workloads": []}
    return event | {"stopped": figures.model_dump(mode="json")}, orjson.loads(render_samples(taken))


def fields(event: dict[str, Any], raw: dict[str, Any], policy: dict[str, Any] | None = None) -> set[str]:
    return {path for path, _, _ in stop_differences(event, AUDITED, policy or POLICY, raw)}


def test_nothing_is_found_where_all_follows_from_the_pair() -> None:
    assert fields(*stopped()) == set()


@pytest.mark.parametrize(
    "field",
    ["ratio", "error", "control", "control_error", "most_favourable", "limit", "candidate_median_ns", "rounds"],
)
def test_each_changed_figure_is_found(field: str) -> None:
    event, raw = stopped()
    event["stopped"][field] = event["stopped"][field] * 2 or 0.1
    assert f"stopped.{field}" in fields(event, raw)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reason": {"code": "INCORRECT_NUMERICAL"}}, "stopped.code"),
        ({"reason": {"code": "NOISE_TOO_HIGH"}}, "stopped.code"),
        ({"baseline_used": "compile"}, "stopped.baseline_used"),
        ({"workloads": [{}]}, "stopped.workloads"),
    ],
)
def test_a_stop_says_nothing_but_too_slow(changes: dict[str, Any], field: str) -> None:
    event, raw = stopped()
    assert field in fields({**event, **changes}, raw)


def test_a_stop_that_its_pair_doesnt_give_is_found_though_every_figure_is_right() -> None:
    event, _ = stopped()
    fast = samples(candidate_ns=110_000, pairs=1)
    raw = orjson.loads(render_samples(fast))
    ratio = 100_000 / 110_000
    right = {"ratio": ratio, "most_favourable": ratio, "candidate_median_ns": 110_000.0}
    event["stopped"] |= right
    assert ratio > LIMIT
    assert fields(event, raw) == {"stopped.most_favourable"}


def test_a_pair_among_others_or_a_shortened_one_is_no_ground_for_a_stop() -> None:
    event, raw = stopped()
    assert fields(event, raw, {**POLICY, "rounds": 5}) == {"stopped.rounds"}
    (attempt,) = raw["attempts"]
    for more in (
        {"attempts": [{**attempt, "pairs": attempt["pairs"] * 2}]},
        {"attempts": [attempt, attempt]},
        {"confirmation": [attempt]},
    ):
        assert fields(event, {**raw, **more}) == {"stopped"}


def test_an_unknown_rule_is_no_ground_for_a_stop() -> None:
    event, raw = stopped()
    changed = copy.deepcopy(event)
    changed["stopped"]["rule"] = "first_pair.v2"
    assert fields(changed, raw) == {"stopped.rule"}


def test_samples_of_a_stop_are_those_of_the_first_pair_alone() -> None:
    taken = samples(candidate_ns=250_000, pairs=3)
    assert early_stop(TASK, taken.attempts[0]) is None  # type: ignore[arg-type]  # a slope's
    assert len(Samples(taken.attempts).per_call_ns("candidate")) == 3
