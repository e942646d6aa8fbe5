"""What the ledger puts around an event."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from forge.domain.digest import Digest
from forge.events.fact import Fact

E_co = TypeVar("E_co", bound=Fact, covariant=True)


@dataclass(frozen=True, slots=True)
class Recorded(Generic[E_co]):
    """An event as it stands in the ledger: its place, its time, its author, its hash."""

    seq: int
    event_id: str
    stream: str
    stream_version: int
    recorded_at: str
    """UTC with microseconds; informative, the order is `seq`."""
    actor: str
    correlation_id: str
    causation_id: str | None
    event_hash: Digest
    event: E_co
