"""The tables of `history.db` as SQLModel declares them: what audits ask, and all that the folds remember.

`schema.sql` is what runs: `python -m tests.projections.schema` writes it out from these declarations, and nothing
that runs imports this module. A changed table is also a new SCHEMA_VERSION in `schema.py`.
"""

from sqlmodel import Field

from forge.projections import experiment_table, kernel_tables, run_tables
from forge.projections.history_table import TABLES, HistoryTable


class CursorRow(HistoryTable, table=True):
    """The one row that says what the file was derived from, and by which projector."""

    __tablename__ = "cursor"
    ledger_id: str = Field(primary_key=True)
    seq: int
    event_hash: str
    schema_version: int
    projector_version: int
    registry_seq: int
    """The newest event that changed what the registry's documents show."""
    registry_hash: str
    checkpoint_seq: int | None
    """The newest checkpoint."""


__all__ = ["TABLES", "CursorRow", "experiment_table", "kernel_tables", "run_tables"]
