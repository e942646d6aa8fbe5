"""Contenders: baselines that come from a library or from a file of the user, and what became of each of them."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from forge.domain.contender_name import PREFIX
from forge.domain.digest import Digest, Value
from forge.domain.verdict import Reason

ContenderId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}\.[a-z][a-z0-9_]{0,47}$")]
"""Name of a description: the library's and the contender's own, such as liger.softmax."""
Version = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+!_-]{0,63}$")]
ContenderName = Annotated[
    str,
    StringConstraints(
        pattern=r"^contender:[a-z][a-z0-9_]{0,31}\.[a-z][a-z0-9_]{0,47}@[0-9A-Za-z][0-9A-Za-z.+!_-]{0,63}$"
    ),
]
"""Name of a contender as a baseline: its description's name and the version that was measured, such as
contender:liger.softmax@0.5.2."""
OWN_LIBRARY = "own"
"""Library in the name of a contender that is a file of the user; its version is the beginning of its digest."""
Absence = Literal["not_installed", "version", "not_applicable", "no_toolkit", "unreadable"]
"""Cause of an absence. `version`: another version than described is installed. `not_applicable`: to this shape, type
or device. `no_toolkit`: it has to be compiled, and no CUDA toolkit is here. `unreadable`: its text is wrong."""


RequiredContender = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}(\.[a-z][a-z0-9_]{0,47})?$")]
"""Name of a contender that must have been there, such as liger.softmax, or of a library for all of its contenders."""


def is_required(contender: str, required: Iterable[str]) -> bool:
    """Return whether a contender, or the whole library that it comes from, is required."""
    return any(contender == name or contender.startswith(f"{name}.") for name in required)


def name_of(contender: str, version: str) -> str:
    """Return the name of a contender as a baseline."""
    return f"{PREFIX}{contender}@{version}"


class OwnContender(Value):
    """A file of the user that a task's candidates are measured against."""

    name: ContenderName
    sha256: Digest
    """Digest of the file's bytes, which are stored with the task."""
    entry: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
    """Name of the function or class to call."""


class MeasuredInFull(Value):
    """It was right and among the fastest, and so was measured beside the candidate in every round."""

    outcome: Literal["in_full"] = "in_full"
    least_ns: Annotated[float, Field(gt=0)]
    """Shortest time of a call in the screening, in nanoseconds: an estimate that only ranks contenders."""


class ScreenedOut(Value):
    """It was right and slower than others, and so was timed in the screening only."""

    outcome: Literal["slower"] = "slower"
    least_ns: Annotated[float, Field(gt=0)]
    """Shortest time of a call in the screening, in nanoseconds."""


class ContenderFailed(Value):
    """It was there and is no baseline: it raised, answered wrongly, or changed its inputs or its process."""

    outcome: Literal["failed"] = "failed"
    reason: Reason


class ContenderAbsent(Value):
    """It wasn't there to be measured."""

    outcome: Literal["absent"] = "absent"
    cause: Absence
    detail: str
    """One sentence with the value that was found and the one that was expected."""


Standing = Annotated[MeasuredInFull | ScreenedOut | ContenderFailed | ContenderAbsent, Field(discriminator="outcome")]


class ContenderStanding(Value):
    """What became of one contender in one benchmark."""

    contender: ContenderId
    package: str
    """Distribution that it comes from; `own` for a file of the user."""
    version: Version | None = None
    """Version that was found. None: the package isn't installed."""
    licence: str = ""
    standing: Standing

    @property
    def name(self) -> str:
        """Name of the contender as a baseline."""
        return name_of(self.contender, self.version or "0")


def missing(standings: Iterable[ContenderStanding], required: Iterable[str]) -> dict[str, str]:
    """Return the required contenders that apply to a task and weren't there, each with the reason in words."""
    names = tuple(required)
    return {
        one.contender: one.standing.detail
        for one in standings
        if is_required(one.contender, names)
        and isinstance(one.standing, ContenderAbsent)
        and one.standing.cause != "not_applicable"
    }
