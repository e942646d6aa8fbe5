"""Families and their versions, in order."""

import json

from forge.projections import registry, versions
from forge.projections.fold import Position
from tests.projections.histories import deprecate, opened, promoted, revoke
from tests.projections.values import digest, task


def test_a_family_lists_its_versions_in_order_with_their_status():
    history = opened()
    first, second, third = (promoted(history, name=name) for name in "abc")
    deprecate(history, first, by=third)
    revoke(history, second)
    state = registry.fold(registry.EMPTY, history.events)
    lines = versions.versions(state)[task().family]
    assert [(line.kernel_id, line.version, line.status) for line in lines] == [
        (first, 1, "deprecated"),
        (second, 2, "revoked"),
        (third, 3, "active"),
    ]
    assert lines[0].superseded_by == third


def test_the_next_version_counts_revoked_ones_too():
    history = opened()
    revoke(history, promoted(history))
    state = registry.fold(registry.EMPTY, history.events)
    assert versions.next_version(state, task().family) == 2
    assert versions.next_version(state, "never seen") == 1


def test_more_than_nine_versions_stay_in_order():
    history = opened()
    kernel_ids = [promoted(history, name=str(number)) for number in range(11)]
    state = registry.fold(registry.EMPTY, history.events)
    document = json.loads(versions.render(state, Position("l", 1, digest("h"))))
    assert [line["kernel_id"] for line in document["families"][task().family]] == kernel_ids
