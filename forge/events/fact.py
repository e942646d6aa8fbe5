"""The base of every event: a frozen value with a stable name, a version and a stream."""

from typing import ClassVar, Literal

from forge.domain.digest import Value

Group = Literal["handed_in", "run", "observed", "decided", "human", "opening", "signed", "moved"]
"""Groups of event types. `forge/ledger/actor_classes.py` says which class of actors may write a group."""


class Fact(Value):
    """Base of all events. `TYPE` and `SCHEMA_VERSION` never change; they are columns and not part of the payload."""

    TYPE: ClassVar[str]
    GROUP: ClassVar[Group]
    """Group that says who may write the event. An event without one can't be written."""
    SCHEMA_VERSION: ClassVar[int] = 1

    def stream(self) -> str:
        """Return the stream that this event is appended to: `<category>:<id>`."""
        raise NotImplementedError(f"{type(self).__name__} names no stream")
