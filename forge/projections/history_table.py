"""Defines the base of the tables of `history.db`, whose metadata the ledger's migrations never see."""

from sqlalchemy.orm import registry
from sqlmodel import SQLModel

TABLES = registry()
CLUSTERED = {"sqlite_with_rowid": False}
"""Option of a table without rowid: its content doesn't depend on the order in which it was written."""


class HistoryTable(SQLModel, registry=TABLES):
    """Base of the tables; it keeps them apart from every other SQLModel table."""
