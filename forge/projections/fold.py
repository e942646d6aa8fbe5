"""Defines what every fold uses: the position in the ledger, the source of events, and a test of an event's type."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeGuard, TypeVar

from forge.domain.digest import Digest
from forge.events import Event, Recorded
from forge.events.fact import Fact
from forge.ledger.replay import Line

F = TypeVar("F", bound=Fact)


class SourceHead(Protocol):
    """The end of a ledger: place and hash of the newest event."""

    @property
    def seq(self) -> int:
        """Return the newest event's place; 0 for an empty ledger."""

    @property
    def event_hash(self) -> Digest:
        """Return the newest event's hash, in hex."""


class Source(Protocol):
    """The beginning of one ledger, in order and by place. A fold sees nothing else."""

    @property
    def ledger_id(self) -> str:
        """Return the ledger's id."""

    @property
    def head(self) -> SourceHead:
        """Return the place and the hash of the last event."""

    def hash_at(self, seq: int) -> Digest | None:
        """Return the hash of the event at `seq`; None beyond the end."""

    def lines(self, after_seq: int) -> Iterator[Line]:
        """Yield the events that follow `after_seq`, up to the head."""

    def event_at(self, seq: int) -> Recorded[Event] | None:
        """Return the event at `seq`, checked; None if there is none."""


@dataclass(frozen=True, slots=True)
class Position:
    """The point in one ledger that a published file was derived from."""

    ledger_id: str
    seq: int
    event_hash: Digest

    def document(self) -> dict[str, object]:
        """Return the `ledger` object of every published file."""
        return {"ledger_id": self.ledger_id, "seq": self.seq, "event_hash": self.event_hash}

    def stands_in(self, source: Source) -> bool:
        """Return whether the ledger holds this point: it has the same id, and the same event at this place."""
        return self.ledger_id == source.ledger_id and self.event_hash == source.hash_at(self.seq)


def holds(recorded: Recorded[Fact] | None, kind: type[F]) -> TypeGuard[Recorded[F]]:
    """Return whether `recorded` is an event of type `kind`."""
    return recorded is not None and isinstance(recorded.event, kind)
