"""Decides which actor may write which event: an author hands in work and claims, never the evidence that judges them.

Every event type is in exactly one group. No actor can write a type that is in no group.
"""

import re
from functools import lru_cache
from typing import Literal, get_args

from forge.errors import ActorForbidden
from forge.events import Event
from forge.events.candidate import CandidateRejected

ActorClass = Literal["cli", "agent", "ci", "system", "import"]
"""The classes of actors: a person at the command line, a language model, a workflow, Forge itself, another ledger or
archive."""

Group = Literal["handed_in", "run", "observed", "decided", "human", "opening", "signed", "moved"]
"""Groups of event types; a class of actors may write all types of a group or none."""

GROUPS: dict[Group, frozenset[str]] = {
    "handed_in": frozenset(
        {
            "TaskCreated",
            "PlanAccepted",
            "PromptRendered",
            "CandidateSubmitted",
            "CandidateDuplicated",
            "ClaimRecorded",
            "LessonProposed",
            "WorkRequested",
            "WorkWithdrawn",
            "StepProposed",
            "WishRefused",
        }
    ),
    "run": frozenset({"RunStarted", "RunSealed", "RunAborted", "SessionOpened", "SessionClosed"}),
    "observed": frozenset(
        {
            "EnvironmentCaptured",
            "DeviceCalibrated",
            "CandidateRejected",
            "CandidateVerified",
            "VerificationErrored",
            "BaselineRecorded",
            "ShapeTimed",
            "BenchmarkRecorded",
            "BenchmarkFailed",
            "BenchmarkErrored",
            "BenchmarkInvalidated",
            "ProfileCaptured",
            "ClaimAssessed",
            "ExperimentClosed",
            "ReplicationRecorded",
            "TrialsScreened",
            "StepAnswered",
            "RoundClosed",
            "ModelRequested",
            "ModelResponded",
            "ModelFailed",
            "ModelLost",
            "BudgetReserved",
            "BudgetSettled",
            "BudgetRefused",
        }
    ),
    "decided": frozenset({"PromotionDenied", "KernelPromoted", "KernelDeprecated", "KernelRevoked"}),
    "human": frozenset({"HumanDecided", "LessonAccepted", "LedgerKeyAdopted", "BudgetGranted"}),
    "opening": frozenset({"LedgerOpened"}),
    "signed": frozenset({"CheckpointPublished", "LedgerKeyRotated"}),
    "moved": frozenset({"LedgerImported", "LedgerRestored"}),
}
"""Group -> the event types in it."""

MAY_WRITE: dict[ActorClass, frozenset[Group]] = {
    "cli": frozenset({"handed_in", "run", "observed", "decided", "human", "signed", "moved"}),
    "ci": frozenset({"handed_in", "run", "observed", "decided", "signed", "moved"}),
    "system": frozenset({"handed_in", "run", "observed", "decided", "opening", "signed", "moved"}),
    "agent": frozenset({"handed_in"}),
    "import": frozenset({"handed_in"}),
}
"""Class of actors -> the groups that it may write."""

_GROUP_OF = {name: group for group, types in GROUPS.items() for name in types}
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


def group_of(event: Event) -> Group | None:
    """Return the event's group; a refusal at submission is handed in, any later refusal is evidence."""
    if type(event) is CandidateRejected and event.stage == "submit":
        return "handed_in"
    return _GROUP_OF.get(event.TYPE)


def require_allowed(actor: str, event: Event) -> None:
    """Raise ActorForbidden unless `actor` may write `event`."""
    allowed = MAY_WRITE[actor_class(actor)]
    if group_of(event) not in allowed:
        writers = ", ".join(f"{name}:" for name, groups in MAY_WRITE.items() if group_of(event) in groups)
        raise ActorForbidden(
            f"{actor!r} may not write {event.TYPE}: it may be written by {writers or 'no actor'}; "
            "evidence and decisions come from Forge's own phases, not from the author whom they judge"
        )
