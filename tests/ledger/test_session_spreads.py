"""What two sessions may differ by is computed again from the replications before: a smaller one is told."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from forge.domain.digest import canonical, sha256
from forge.domain.replication import ReplicatedSpeedup
from forge.ledger.audit.each_ledger import Row
from forge.ledger.audit.session_spreads import spread_problems
from tests.pipeline.making import POLICY
from tests.pipeline.test_replicate import at, concluded, kernel

REPLICATIONS = 13


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, Any]]:
    """Replications in a row, each compared with what the ones before it allow."""
    rng, earlier, events = random.Random(3), list[ReplicatedSpeedup](), list[dict[str, Any]]()
    for _ in range(REPLICATIONS):
        event = concluded(kernel(earlier=tuple(earlier)), at(rng.uniform(1.57, 1.63)))
        earlier += event.comparisons
        events.append(event.model_dump(mode="json"))
    return events


def told(events: list[dict[str, Any]], runs: Path) -> list[tuple[int | None, str]]:
    policy = canonical(POLICY)
    digest = sha256(policy)
    (runs / "cas" / digest[:2]).mkdir(parents=True, exist_ok=True)
    (runs / "cas" / digest[:2] / digest).write_bytes(policy)
    rows: list[Row] = [
        (place, b"ReplicationRecorded", json.dumps({**event, "policy_sha256": digest}).encode())
        for place, event in enumerate(events, start=1)
    ]
    return [(problem.seq, problem.what) for problem in spread_problems(rows, runs)]


def test_spreads_that_were_recorded_follow_from_the_replications_before(recorded, tmp_path):
    counts = [event["comparisons"][0]["replications"] for event in recorded]
    assert counts == [0] * 10 + [10, 11, 12]
    assert recorded[-1]["comparisons"][0]["session_spread"] < POLICY.control_half_width
    assert told(recorded, tmp_path) == []


@pytest.mark.parametrize(
    ("place", "change", "what"),
    [
        (12, {"session_spread": 1e-6}, "comparisons.session_spread"),
        (3, {"session_spread": 0.002}, "comparisons.session_spread"),
        (3, {"session_spread": 0.5}, "comparisons.session_spread"),
        (12, {"replications": 13}, "comparisons.replications"),
        (12, {"replications": 9}, "comparisons.replications"),
    ],
)
def test_a_spread_that_they_dont_give_is_told(recorded, place, change, what, tmp_path):
    forged = json.loads(json.dumps(recorded))
    forged[place]["comparisons"][0].update(change)
    assert told(forged, tmp_path) == [(place + 1, what)]


def test_a_replication_that_was_recorded_meanwhile_need_not_be_known(recorded, tmp_path):
    begun_before = [*recorded[:12], recorded[11], recorded[12]]
    assert told(begun_before, tmp_path) == []


def test_a_payload_of_another_form_is_told(tmp_path):
    (problem,) = spread_problems([(5, b"ReplicationRecorded", b"{}")], tmp_path)
    assert (problem.seq, problem.what) == (5, "comparisons")
