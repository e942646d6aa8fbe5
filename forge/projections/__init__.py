"""Rebuildable folds over the ledger: pure, without clock, randomness, environment, files or network.

`PROJECTIONS` is the index of what is published, in the order of writing; `runs` is folded on demand by the
phases and published nowhere. To add one: a module with a `render`, and its line below.
"""

from collections.abc import Callable

from forge.projections import history, leaderboard, registry, snapshot, versions
from forge.projections.fold import Position
from forge.projections.folds import Folds

Render = Callable[[Folds, Position], dict[str, bytes]]

PROJECTIONS: dict[str, Render] = {
    "history": lambda folds, at: {history.FILE: history.render(folds.history, folds.registry, at)},
    "leaderboard": lambda folds, at: {leaderboard.FILE: leaderboard.render(folds.registry, at)},
    "versions": lambda folds, at: {versions.FILE: versions.render(folds.registry, at)},
    "registry": lambda folds, at: {registry.FILE: registry.render(folds.registry, at)},
    "snapshot": lambda folds, at: snapshot.render(folds.registry, at),
}
"""Name -> its files, relative to kernel_registry/."""
