"""The tables and views of `history.db`: what audits ask with plain SQL, and all that the folds remember."""

from sqlmodel import Field

from forge.projections import audit_views, experiment_table, kernel_tables, run_tables
from forge.projections.history_table import SCHEMA_VERSION, TABLES, HistoryTable


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


VIEWS = {
    "leaderboard": """
        SELECT op, gpu, dtype, shape, kernel_id, status, language, low, speedup, high, candidate_median_ns, perf_key,
               row_number() OVER (
                   PARTITION BY op, gpu, dtype, shape ORDER BY low DESC, candidate_median_ns, kernel_id
               ) AS rank
        FROM kernels WHERE status IN ('active', 'deprecated')
    """,
    "claimants": """
        SELECT claimant, metric, count(*) AS claims, sum(verdict = 'confirmed') AS confirmed,
               sum(verdict = 'overstated') AS overstated, sum(verdict = 'refuted') AS refuted,
               sum(verdict IS NULL) AS open
        FROM claims GROUP BY claimant, metric
    """,
    "regressions": """
        SELECT kernel_id, shape, perf_key, newest_ns, earlier_ns, slower
        FROM recent_times WHERE earlier_ns IS NOT NULL
    """,
    "experiments": experiment_table.VIEW,
    **audit_views.VIEWS,
}
"""View -> its query."""

__all__ = ["SCHEMA_VERSION", "TABLES", "VIEWS", "CursorRow", "experiment_table", "kernel_tables", "run_tables"]
