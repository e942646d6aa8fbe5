"""Decides which actor may write which event: an author hands in work and claims, never the evidence that judges them.

Every event type names its group (`GROUP`). A class of actors may write all types of a group or none.
"""

from collections.abc import Mapping

from forge.events import EVENT_TYPES, Event
from forge.events.candidate import CandidateRejected
from forge.events.fact import Group
from forge.ledger.actor_classes import group_of, require_group

_GROUPS: dict[str, Group] = {name: kind.GROUP for name, kind in EVENT_TYPES.items()}
"""Event type -> its group, looked up once, because a model's class variable is slow to reach."""


def require_allowed(actor: str, event: Event) -> None:
    """Raise ActorForbidden unless `actor` may write `event`."""
    stage = event.stage if type(event) is CandidateRejected else None
    require_group(actor, event.TYPE, group_of(event.TYPE, event.GROUP, stage))


def require_allowed_document(actor: str, type_name: str, document: Mapping[str, object]) -> None:
    """Raise ActorForbidden unless `actor` may write the event of this known type and content."""
    require_group(actor, type_name, group_of(type_name, _GROUPS[type_name], document.get("stage")))
