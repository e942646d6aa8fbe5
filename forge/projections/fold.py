"""What every fold shares: where in the ledger it stands, what it is given, and how to look inside an event."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeGuard, TypeVar

from forge.domain.digest import Digest
from forge.events import Event, Recorded
from forge.events.fact import Fact
from forge.ledger.replay import Line

F = TypeVar("F", bound=Fact)


class Head(Protocol):
    """The end of a ledger: the newest event's place and hash."""

    @property
    def seq(self) -> int:
        """The newest event's place; 0 for an empty ledger."""

    @property
    def event_hash(self) -> Digest:
        """The newest event's hash, in hex."""


class Source(Protocol):
    """A prefix of one ledger, in order and by place: all that a fold may see."""

    @property
    def ledger_id(self) -> str:
        """Which ledger it is."""

    @property
    def head(self) -> Head:
        """Where the prefix ends."""

    def hash_at(self, seq: int) -> Digest | None:
        """The hash of the event at `seq`; None beyond the end."""

    def lines(self, after_seq: int) -> Iterator[Line]:
        """The events that follow `after_seq`, up to the head."""

    def event_at(self, seq: int) -> Recorded[Event] | None:
        """The event at `seq`, checked; None if there is none."""


@dataclass(frozen=True, slots=True)
class Position:
    """The point in one ledger that a published file was derived from."""

    ledger_id: str
    seq: int
    event_hash: Digest

    def document(self) -> dict[str, object]:
        """The `ledger` object of every published file."""
        return {"ledger_id": self.ledger_id, "seq": self.seq, "event_hash": self.event_hash}


def holds(recorded: Recorded[Fact] | None, kind: type[F]) -> TypeGuard[Recorded[F]]:
    """Whether there is a recorded event, and it is a `kind`."""
    return recorded is not None and isinstance(recorded.event, kind)
