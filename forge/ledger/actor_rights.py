"""Defines the classes of actors, and the groups of events that each may write. It imports nothing heavy."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

from forge.errors import ActorForbidden

if TYPE_CHECKING:
    from forge.events.kinds import Group

ActorClass = Literal["cli", "agent", "ci", "system", "import"]
"""The classes of actors: a person at the command line, a language model, a workflow, Forge itself, another ledger or
archive."""

MAY_WRITE: "dict[ActorClass, frozenset[Group]]" = {
    "cli": frozenset({"handed_in", "run", "observed", "decided", "human", "signed", "moved"}),
    "ci": frozenset({"handed_in", "run", "observed", "decided", "signed", "moved"}),
    "system": frozenset({"handed_in", "run", "observed", "decided", "opening", "signed", "moved"}),
    "agent": frozenset({"handed_in"}),
    "import": frozenset({"handed_in"}),
}
"""Class of actors -> the groups that it may write."""

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


@lru_cache(maxsize=1024)
def _may_write(actor: str, group: "Group") -> bool:
    """Return whether an actor may write a group; it is remembered, because every fold asks for every event."""
    return group in MAY_WRITE[actor_class(actor)]


def group_of(type_name: str, group: "Group", stage: object) -> "Group":
    """Return the group of an event of a type. A refusal counts as submitted at submission, later as evidence."""
    return "handed_in" if type_name == "CandidateRejected" and stage == "submit" else group


def require_group(actor: str, type_name: str, group: "Group") -> None:
    """Raise ActorForbidden unless `actor` may write events of this type, which is of this group."""
    if not _may_write(actor, group):
        writers = ", ".join(f"{name}:" for name, groups in MAY_WRITE.items() if group in groups)
        raise ActorForbidden(
            f"{actor!r} may not write {type_name}: it may be written by {writers or 'no actor'}; "
            "evidence and decisions come from Forge's own phases, not from the author whom they judge"
        )
