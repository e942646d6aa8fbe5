"""Ranks within a slot."""

import json

from tests.projections.histories import History, asked, deprecate, invalidate, opened, promoted, rebuild, revoke
from tests.projections.values import task


def slots(history: History) -> list[dict]:
    return json.loads(rebuild(history.events, history.head)["leaderboard.json"])["slots"]


def test_a_slot_ranks_by_the_lower_bound_of_the_speedup_over_all_languages():
    history = opened()
    slow = promoted(history, name="a", ratio=1.2)
    fast = promoted(history, name="b", wanted=task(language="cpp"), ratio=2.0)
    near = promoted(history, name="c", ratio=1.98)
    (slot,) = slots(history)
    assert [(line["kernel_id"], line["rank"], line["within_noise_of_first"]) for line in slot["kernels"]] == [
        (fast, 1, True),
        (near, 2, True),
        (slow, 3, False),
    ]
    assert asked(history, "SELECT kernel_id FROM leaderboard WHERE op = 'rmsnorm' ORDER BY rank LIMIT 2") == [
        (fast,),
        (near,),
    ]


def test_equal_bounds_go_by_median_time_then_by_name():
    history = opened()
    slower = promoted(history, name="a", median_ns=2000.0)
    second = promoted(history, name="b", median_ns=1000.0)
    third = promoted(history, name="c", median_ns=1000.0)
    (slot,) = slots(history)
    assert [line["kernel_id"] for line in slot["kernels"]] == [second, third, slower]


def test_revoked_kernels_and_kernels_without_valid_evidence_have_no_rank():
    history = opened()
    kept, revoked, invalid = (promoted(history, name=name) for name in "abc")
    deprecate(history, kept)
    revoke(history, revoked)
    invalidate(history, dict(asked(history, "SELECT kernel_id, benchmark_seq FROM kernels"))[invalid])
    (slot,) = slots(history)
    assert [line["kernel_id"] for line in slot["kernels"]] == [kept]


def test_other_gpus_and_shapes_are_other_slots():
    history = opened()
    promoted(history)
    promoted(history, wanted=task(gpu="h100"))
    promoted(history, wanted=task(shape={"batch": 1, "hidden_size": 4096}))
    assert len(slots(history)) == 3
