"""Decides which actor may write which event: an author submits work and claims, never the evidence that judges them.

Every event type names its group (`forge/events/kinds.py`). A class of actors may write all types of a group or none.
"""

from collections.abc import Mapping

from forge.events import Event
from forge.events.candidate import CandidateRejected
from forge.events.kinds import KINDS
from forge.ledger.actor_rights import group_of, require_group


def require_allowed(actor: str, event: Event) -> None:
    """Raise ActorForbidden unless `actor` may write `event`."""
    stage = event.stage if type(event) is CandidateRejected else None
    require_group(actor, event.TYPE, group_of(event.TYPE, KINDS[event.TYPE].group, stage))


def require_allowed_document(actor: str, type_name: str, document: Mapping[str, object]) -> None:
    """Raise ActorForbidden unless `actor` may write the event of this known type and content."""
    require_group(actor, type_name, group_of(type_name, KINDS[type_name].group, document.get("stage")))
