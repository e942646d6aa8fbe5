"""Lists the folds behind `history.db`, in the order in which an event passes through them.

To add a fold: a module with `TYPES` and `take`, its tables in `schema.sql`, and its line below.
"""

from collections.abc import Callable

from forge.ledger.replay import Line
from forge.projections import (
    candidate_events,
    claims,
    experiment_lines,
    history,
    models,
    operations,
    recent_times,
    registry,
    run_lines,
)
from forge.projections.fold import Source
from forge.projections.state import State

Take = Callable[[State, Line, Source], None]

FOLDS: tuple[tuple[frozenset[str], Take], ...] = (
    (history.TYPES, history.take),
    (claims.TYPES, claims.take),
    (run_lines.TYPES, run_lines.take),
    (experiment_lines.TYPES, experiment_lines.take),
    (registry.TYPES, registry.take),
    (operations.TYPES, operations.take),
    (models.TYPES, models.take),
    (candidate_events.TYPES, candidate_events.take),
    (recent_times.TYPES, recent_times.take),
)
"""Event types that each fold reads, and the function that takes one event."""

TAKERS: dict[str, tuple[Take, ...]] = {
    name: tuple(take for types, take in FOLDS if name in types)
    for name in sorted(frozenset[str]().union(*(types for types, _ in FOLDS)))
}
"""Event type -> the folds that read it."""
