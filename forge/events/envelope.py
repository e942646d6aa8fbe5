"""The fields that the ledger adds to an event."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from forge.domain.digest import Digest
from forge.events.fact import Fact

E_co = TypeVar("E_co", bound=Fact, covariant=True)


@dataclass(frozen=True, slots=True)
class Recorded(Generic[E_co]):
    """An event in the ledger: its position, its time, its author, its hash."""

    seq: int
    event_id: str
    stream: str
    stream_version: int
    recorded_at: str
    """Time in UTC with microseconds, for information. `seq` gives the order."""
    actor: str
    correlation_id: str
    causation_id: str | None
    event_hash: Digest
    event: E_co
