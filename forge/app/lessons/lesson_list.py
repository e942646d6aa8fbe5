"""Lists lessons as documents. It imports no model of an event, so that it stays quick."""

from forge.app.plain_events import HasEvents
from forge.ledger.plain_rows import PlainEvent

Data = dict[str, object]


def lessons_of(workspace: HasEvents) -> list[Data]:
    """Return every lesson as data for a table or for JSON, in the order of their proposals."""
    proposed: dict[str, PlainEvent] = {}
    accepted: dict[str, PlainEvent] = {}
    for one in workspace.events("LessonProposed", "LessonAccepted"):
        (proposed if one.type == "LessonProposed" else accepted)[one.event["lesson_id"]] = one
    return [described_of(one, accepted.get(lesson_id)) for lesson_id, one in proposed.items()]


def described_of(proposed: PlainEvent, accepted: PlainEvent | None) -> Data:
    """Return a lesson as data for a table or for JSON."""
    return {
        **proposed.event,
        "state": "accepted" if accepted else "proposed",
        "proposed_seq": proposed.seq,
        "proposed_by": proposed.actor,
        "accepted_seq": accepted.seq if accepted else None,
        "accepted_by": accepted.event["by"] if accepted else None,
        "playbook_sha256": accepted.event["after_sha256"] if accepted else None,
    }
