"""What every table of `history.db` shares: its own metadata, which the ledger's migrations never see."""

from sqlalchemy.orm import registry
from sqlmodel import SQLModel

TABLES = registry()
CLUSTERED = {"sqlite_with_rowid": False}
"""Clustered by its key: the table's content says nothing of the order in which it was written."""


class HistoryTable(SQLModel, registry=TABLES):
    """Base of the tables; it only keeps them apart from every other SQLModel table."""
