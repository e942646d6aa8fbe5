"""Decides which actor may write which event: an author hands in work and claims, never the evidence that judges them.

Every event type names its group (`GROUP`). A class of actors may write all types of a group or none.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, get_args

from forge.errors import ActorForbidden
from forge.events import EVENT_TYPES, Event
from forge.events.candidate import CandidateRejected
from forge.events.fact import Group

ActorClass = Literal["cli", "agent", "ci", "system", "import"]
"""The classes of actors: a person at the command line, a language model, a workflow, Forge itself, another ledger or
archive."""

MAY_WRITE: dict[ActorClass, frozenset[Group]] = {
    "cli": frozenset({"handed_in", "run", "observed", "decided", "human", "signed", "moved"}),
    "ci": frozenset({"handed_in", "run", "observed", "decided", "signed", "moved"}),
    "system": frozenset({"handed_in", "run", "observed", "decided", "opening", "signed", "moved"}),
    "agent": frozenset({"handed_in"}),
    "import": frozenset({"handed_in"}),
}
"""Class of actors -> the groups that it may write."""

_GROUPS: dict[str, Group] = {name: kind.GROUP for name, kind in EVENT_TYPES.items()}
"""Event type -> its group, looked up once, because a model's class variable is slow to reach."""
_CLASSES: dict[str, ActorClass] = {name: name for name in get_args(ActorClass)}
_ACTOR = re.compile(r"([a-z]+):(?! ).{1,190}")
"""Pattern of an actor: class, colon and a name of up to 190 characters."""


@lru_cache(maxsize=256)
def actor_class(actor: str) -> ActorClass:
    """Return the class in `<class>:<name>`; raise ActorForbidden for any other text."""
    match = _ACTOR.fullmatch(actor)
    found = _CLASSES.get(match[1]) if match and actor.isprintable() else None
    if found is None:
        expected = ", ".join(f"{name}:<name>" for name in MAY_WRITE)
        raise ActorForbidden(f"unknown actor {actor!r}: expected one of {expected}")
    return found


def group_of(event: Event) -> Group:
    """Return the event's group; a refusal at submission is handed in, any later refusal is evidence."""
    if type(event) is CandidateRejected and event.stage == "submit":
        return "handed_in"
    return event.GROUP


def require_allowed(actor: str, event: Event) -> None:
    """Raise ActorForbidden unless `actor` may write `event`."""
    _require_group(actor, event.TYPE, group_of(event))


def require_allowed_document(actor: str, type_name: str, document: Mapping[str, object]) -> None:
    """Raise ActorForbidden unless `actor` may write the event of this known type and content."""
    at_the_door = type_name == "CandidateRejected" and document.get("stage") == "submit"
    _require_group(actor, type_name, "handed_in" if at_the_door else _GROUPS[type_name])


@lru_cache(maxsize=1024)
def _may_write(actor: str, group: Group) -> bool:
    """Return whether an actor may write a group; it is remembered, because every fold asks for every event."""
    return group in MAY_WRITE[actor_class(actor)]


def _require_group(actor: str, type_name: str, group: Group) -> None:
    if not _may_write(actor, group):
        writers = ", ".join(f"{name}:" for name, groups in MAY_WRITE.items() if group in groups)
        raise ActorForbidden(
            f"{actor!r} may not write {type_name}: it may be written by {writers or 'no actor'}; "
            "evidence and decisions come from Forge's own phases, not from the author whom they judge"
        )
