"""Gives the folds a ledger as it is at one moment; later events aren't seen."""

from collections.abc import Iterator
from functools import lru_cache

from forge.domain.digest import Digest
from forge.events import Event, Recorded
from forge.ledger.replay import Line
from forge.ledger.store import Ledger
from forge.ledger.writing import Head
from forge.projections.folds import TAKERS

CACHED_EVENTS = 16
"""Number of events that are cached by place. Chosen; most kernels of a period were measured on one machine."""


class LedgerSource:
    """The events up to the head at the time when it is made."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.head: Head = ledger.head
        self._asked = lru_cache(CACHED_EVENTS)(self._read)

    @property
    def ledger_id(self) -> str:
        """Return the ledger's id."""
        return self._ledger.ledger_id

    def hash_at(self, seq: int) -> Digest | None:
        """Return the hash of the event at `seq`; None beyond the head."""
        if not 1 <= seq <= self.head.seq:
            return None
        return next(self._ledger.rows(after_seq=seq - 1, limit=1)).event_hash.hex()

    def lines(self, after_seq: int) -> Iterator[Line]:
        """Yield the events that follow `after_seq`, with the payloads that a fold reads."""
        return self._ledger.replay(after_seq=after_seq, until_seq=self.head.seq, types=TAKERS)

    def event_at(self, seq: int) -> Recorded[Event] | None:
        """Return the event at `seq`, checked by its digest; None if there is none."""
        return self._asked(seq) if 1 <= seq <= self.head.seq else None

    def _read(self, seq: int) -> Recorded[Event]:
        return next(self._ledger.read(after_seq=seq - 1, limit=1))
