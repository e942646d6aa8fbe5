"""Decides which actor may write which event: an author hands in work and claims, never the evidence that judges them.

Every event type names its group (`GROUP`). A class of actors may write all types of a group or none.
"""

from collections.abc import Mapping

from forge.events import EVENT_TYPES, Event
from forge.events.candidate import CandidateRejected
from forge.events.fact import Group
from forge.ledger.actor_classes import require_group

_GROUPS: dict[str, Group] = {name: kind.GROUP for name, kind in EVENT_TYPES.items()}
"""Event type -> its group, looked up once, because a model's class variable is slow to reach."""


def group_of(event: Event) -> Group:
    """Return the event's group; a refusal at submission is handed in, any later refusal is evidence."""
    if type(event) is CandidateRejected and event.stage == "submit":
        return "handed_in"
    return event.GROUP


def require_allowed(actor: str, event: Event) -> None:
    """Raise ActorForbidden unless `actor` may write `event`."""
    require_group(actor, event.TYPE, group_of(event))


def require_allowed_document(actor: str, type_name: str, document: Mapping[str, object]) -> None:
    """Raise ActorForbidden unless `actor` may write the event of this known type and content."""
    at_the_door = type_name == "CandidateRejected" and document.get("stage") == "submit"
    require_group(actor, type_name, "handed_in" if at_the_door else _GROUPS[type_name])
