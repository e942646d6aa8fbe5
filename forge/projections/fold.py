"""What every fold shares: where in the ledger it stands, and how to look inside a recorded event."""

from dataclasses import dataclass
from typing import Protocol, TypeGuard, TypeVar

from forge.domain.digest import Digest
from forge.events import Recorded
from forge.events.fact import Fact

F = TypeVar("F", bound=Fact)


class Head(Protocol):
    """The end of a ledger: the newest event's place and hash."""

    @property
    def seq(self) -> int:
        """The newest event's place; 0 for an empty ledger."""

    @property
    def event_hash(self) -> Digest:
        """The newest event's hash, in hex."""


@dataclass(frozen=True, slots=True)
class Position:
    """The point in one ledger that a published file was derived from."""

    ledger_id: str
    seq: int
    event_hash: Digest

    def document(self) -> dict[str, object]:
        """The `ledger` object of every published file."""
        return {"ledger_id": self.ledger_id, "seq": self.seq, "event_hash": self.event_hash}


def holds(recorded: Recorded[Fact], kind: type[F]) -> TypeGuard[Recorded[F]]:
    """Whether the recorded event is a `kind`."""
    return isinstance(recorded.event, kind)
