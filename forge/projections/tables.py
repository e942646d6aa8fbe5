"""The tables and views of `history.db`: what audits ask with plain SQL, and all that the folds remember."""

from sqlmodel import Field

from forge.projections import kernel_tables, run_tables
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
        WITH compared AS MATERIALIZED (
            SELECT kernel_id, shape, perf_key, (
                SELECT avg(candidate_median_ns) FROM (
                    SELECT candidate_median_ns FROM benchmarks AS timed
                    WHERE timed.candidate = kernel.candidate AND timed.perf_key = kernel.perf_key
                      AND timed.shape = kernel.shape AND timed.baseline_used = 1 AND timed.invalidated_seq IS NULL
                    ORDER BY timed.seq DESC LIMIT 10
                )
            ) AS newest_ns, (
                SELECT avg(candidate_median_ns) FROM (
                    SELECT candidate_median_ns FROM benchmarks AS timed
                    WHERE timed.candidate = kernel.candidate AND timed.perf_key = kernel.perf_key
                      AND timed.shape = kernel.shape AND timed.baseline_used = 1 AND timed.invalidated_seq IS NULL
                    ORDER BY timed.seq DESC LIMIT 10 OFFSET 10
                )
            ) AS earlier_ns
            FROM kernels AS kernel
        )
        SELECT kernel_id, shape, perf_key, newest_ns, earlier_ns, newest_ns / earlier_ns AS slower
        FROM compared WHERE earlier_ns IS NOT NULL
    """,
}
"""View -> its query."""

__all__ = ["SCHEMA_VERSION", "TABLES", "VIEWS", "CursorRow", "kernel_tables", "run_tables"]
