"""Families and their versions, in order."""

import json

from tests.projections.histories import History, asked, deprecate, opened, promoted, rebuild, revoke
from tests.projections.values import task


def families(history: History) -> dict:
    return json.loads(rebuild(history.events, history.head)["versions.json"])["families"]


def test_a_family_lists_its_versions_in_order_with_their_status():
    history = opened()
    first, second, third = (promoted(history, name=name) for name in "abc")
    deprecate(history, first, by=third)
    revoke(history, second)
    lines = families(history)[task().family]
    assert [(line["kernel_id"], line["version"], line["status"]) for line in lines] == [
        (first, 1, "deprecated"),
        (second, 2, "revoked"),
        (third, 3, "active"),
    ]
    assert lines[0]["superseded_by"] == third


def test_the_count_of_a_family_includes_revoked_versions():
    history = opened()
    revoke(history, promoted(history))
    assert asked(history, "SELECT family, versions FROM families") == [(task().family, 1)]


def test_more_than_nine_versions_stay_in_order():
    history = opened()
    kernel_ids = [promoted(history, name=str(number)) for number in range(11)]
    assert [line["kernel_id"] for line in families(history)[task().family]] == kernel_ids
