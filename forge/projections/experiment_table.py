"""Declares the table of what was tried and how it ended."""

from sqlalchemy import Index, Text
from sqlmodel import Field

from forge.projections.history_table import CLUSTERED, HistoryTable


class TrialRow(HistoryTable, table=True):
    """The candidate of one run as an experiment; open until the candidate is refused or timed."""

    __tablename__ = "trials"
    __table_args__ = (
        Index("trials_by_slot", "op", "gpu", "dtype", "closed_seq"),
        Index("trials_by_close", "closed_seq", "ended"),
        CLUSTERED,
    )
    run_id: str = Field(primary_key=True)
    task_id: str
    op: str | None
    gpu: str | None
    dtype: str | None
    language: str | None
    shape: str | None
    """Canonical JSON."""
    candidate: str
    author: str
    hypothesis: str | None = Field(sa_type=Text)
    layer: str | None
    axis: str | None
    parent: str | None
    """The candidate it was compared with, if `against` is parent."""
    against: str | None
    """parent, promoted, or a baseline; None where nothing was timed."""
    ended: str | None
    """improved, no_change, regressed, incorrect, build_failed; None while it is open."""
    reason: str | None
    speedup: float | None
    low: float | None
    high: float | None
    submitted_seq: int
    decided_seq: int | None
    """The refusal or the benchmark that decided."""
    closed_seq: int | None
    """The event that closed the experiment: ExperimentClosed, or for older runs the decision."""
    recorded_at: str
