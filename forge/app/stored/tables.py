"""Defines what an audit reads of a workspace whose ledger it doesn't need: the tables of `history.db`."""

import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Tables(Protocol):
    """The tables at the ledger's head, for reading."""

    def tables(self) -> AbstractContextManager[sqlite3.Connection]:
        """Open the tables of the projections for reading, until the block ends."""
        ...

    def tables_file(self) -> AbstractContextManager[Path]:
        """Find the file of the tables."""
        ...


class HasTables(Protocol):
    """A workspace, opened whole or for its tables alone."""

    @property
    def publication(self) -> Tables:
        """Return the place of the tables."""
        ...
