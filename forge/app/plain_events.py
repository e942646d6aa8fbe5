"""Defines what an answer reads that needs tables, a few events as documents, and no models."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from forge.app.stored.as_document import plain
from forge.app.stored.tables import HasTables, Tables
from forge.ledger.plain_rows import PlainEvent
from forge.ledger.tree import StoredTree

if TYPE_CHECKING:
    from forge.app.workspace import Workspace


class HasEvents(HasTables, Protocol):
    """A workspace, opened whole or for its tables and its rows alone."""

    @property
    def home(self) -> Path:
        """Return the workspace's folder."""
        ...

    @property
    def head_seq(self) -> int:
        """Return the place of the newest event."""
        ...

    def events(self, *types: str) -> Sequence[PlainEvent]:
        """Return all events of some types, in order."""
        ...

    def event(self, seq: int) -> PlainEvent:
        """Return the event at a place."""
        ...

    def rows(self, query: str, values: tuple[object, ...]) -> list[Any]:
        """Return what a query of the ledger finds."""
        ...


class HasTree(HasEvents, Protocol):
    """A ledger's events as plain documents, with the Merkle tree over all of them."""

    def tree(self) -> AbstractContextManager[StoredTree]:
        """Open the Merkle tree of the ledger for reading, until the block ends."""
        ...


class OfWorkspace:
    """The events of a workspace that is open whole: they are read as models, and returned as plain documents."""

    def __init__(self, workspace: "Workspace") -> None:
        self._workspace = workspace

    @property
    def publication(self) -> Tables:
        """Return the place of the tables."""
        return self._workspace.publication

    @property
    def home(self) -> Path:
        """Return the workspace's folder."""
        return self._workspace.home

    @property
    def head_seq(self) -> int:
        """Return the place of the newest event."""
        return self._workspace.ledger.head.seq

    def events(self, *types: str) -> list[PlainEvent]:
        """Return all events of some types, in order."""
        return [plain(one) for one in self._workspace.ledger.read(types=types)]

    def event(self, seq: int) -> PlainEvent:
        """Return the event at a place."""
        return plain(next(self._workspace.ledger.read(after_seq=seq - 1, limit=1)))

    def rows(self, query: str, values: tuple[object, ...]) -> list[Any]:
        """Return what a query of the ledger finds."""
        with self._workspace.ledger.snapshot() as connection:
            return connection.execute(query, values).fetchall()

    def tree(self) -> AbstractContextManager[StoredTree]:
        """Open the Merkle tree of the ledger for reading, until the block ends."""
        return self._workspace.ledger.tree()
