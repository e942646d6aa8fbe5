"""Declares the tables of `history.db` in SQLModel: what audits read, and what the folds remember.

The tables that run are in `schema.sql`, which `python -m tests.projections.schema` writes from these declarations. No
running code imports this module. A changed table needs a new SCHEMA_VERSION in `forge/domain/history_version.py`.
"""

from sqlmodel import Field

from forge.projections import experiment_table, kernel_tables, run_tables
from forge.projections.history_table import TABLES, HistoryTable


class CursorRow(HistoryTable, table=True):
    """The one row that says from which events the file was derived, and by which version."""

    __tablename__ = "cursor"
    ledger_id: str = Field(primary_key=True)
    seq: int
    event_hash: str
    schema_version: int
    projector_version: int
    registry_seq: int
    """Newest event that changed what the registry's documents show."""
    registry_hash: str
    checkpoint_seq: int | None
    """Place of the newest checkpoint."""


__all__ = ["TABLES", "CursorRow", "experiment_table", "kernel_tables", "run_tables"]
