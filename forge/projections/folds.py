"""The state of everything that is published, after one prefix of the ledger."""

from dataclasses import dataclass

from forge.domain.digest import Digest
from forge.projections.history import HistoryState
from forge.projections.registry import RegistryState


@dataclass(frozen=True, slots=True)
class Folds:
    """The states and the place they stand at. A changed projector version means: start from EMPTY again."""

    registry: RegistryState
    history: HistoryState
    seq: int = 0
    """The newest event folded; 0 before the first."""
    event_hash: Digest | None = None
    """Its hash."""


EMPTY = Folds(RegistryState(), HistoryState())
