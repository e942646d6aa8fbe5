"""The relational tables of `history.db`, for audit queries with plain SQL.

Their metadata is their own: the ledger's migrations never see them. A changed table is a new SCHEMA_VERSION;
the file is then built anew.
"""

from sqlalchemy import Text
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

SCHEMA_VERSION = 1
TABLES = registry()


class HistoryTable(SQLModel, registry=TABLES):
    """Base of the tables; it only keeps them apart from every other SQLModel table."""


class KernelRow(HistoryTable, table=True):
    """One promoted kernel version."""

    __tablename__ = "kernels"
    kernel_id: str = Field(primary_key=True)
    family: str = Field(index=True)
    version: int
    status: str
    status_reason: str | None
    status_seq: int
    op: str
    language: str
    gpu: str
    dtype: str
    shape: str
    candidate: str = Field(index=True)
    task_id: str
    run_id: str
    author: str
    entry_point: str
    artifact_sha256: str | None
    baseline: str
    candidate_median_ns: float
    baseline_median_ns: float
    speedup: float
    low: float
    high: float
    policy_sha256: str
    env_sha256: str
    perf_key: str
    abi_key: str
    verified_seq: int
    benchmark_seq: int
    promoted_seq: int
    recorded_at: str


class CandidateRow(HistoryTable, table=True):
    """One submission; the same candidate may be submitted in several runs."""

    __tablename__ = "candidates"
    seq: int = Field(primary_key=True)
    candidate: str = Field(index=True)
    run_id: str
    task_id: str
    op: str | None
    gpu: str | None
    dtype: str | None
    language: str
    entry_point: str
    author: str
    actor: str
    parents: str
    """A JSON list of digests."""
    hypothesis: str | None = Field(sa_type=Text)
    layer: str | None
    axis: str | None
    recorded_at: str


class BenchmarkRow(HistoryTable, table=True):
    """One workload against one baseline; a benchmark that measured nothing has one row without figures."""

    __tablename__ = "benchmarks"
    seq: int = Field(primary_key=True)
    line: int = Field(primary_key=True)
    """1.. within the event."""
    run_id: str
    candidate: str = Field(index=True)
    task_id: str
    op: str | None = Field(index=True)
    gpu: str | None
    dtype: str | None
    shape: str | None
    """Canonical JSON."""
    env_sha256: str
    perf_key: str | None = Field(index=True)
    driver: str | None
    torch: str | None
    triton: str | None
    candidate_median_ns: float | None
    baseline: str | None
    baseline_used: bool | None
    """Whether this is the baseline that had to be beaten."""
    baseline_median_ns: float | None
    speedup: float | None
    low: float | None
    high: float | None
    floor_fraction: float | None
    samples_sha256: str | None
    verdict: str
    """accepted, rejected or inconclusive."""
    reason_code: str | None
    invalidated_seq: int | None
    """The event that withdrew it."""
    recorded_at: str


class RejectionRow(HistoryTable, table=True):
    """One refusal, at any phase. The machine's own faults aren't refusals."""

    __tablename__ = "rejections"
    seq: int = Field(primary_key=True)
    run_id: str
    candidate: str = Field(index=True)
    task_id: str
    stage: str
    """submit, screen, build, verify, benchmark or promote."""
    verdict: str
    """rejected or inconclusive."""
    reason_code: str = Field(index=True)
    message: str = Field(sa_type=Text)
    recorded_at: str


class ClaimRow(HistoryTable, table=True):
    """Something said about a candidate, and what was measured."""

    __tablename__ = "claims"
    seq: int = Field(primary_key=True)
    claim_id: str
    run_id: str
    candidate: str = Field(index=True)
    claimant: str = Field(index=True)
    metric: str
    unit: str
    workload: str
    baseline: str
    claimed: float
    measured: float | None
    verdict: str | None
    """None as long as nobody held it against a measurement."""
    assessed_seq: int | None
    measured_by_seq: int | None
    recorded_at: str


class RunRow(HistoryTable, table=True):
    """One run and how far it came."""

    __tablename__ = "runs"
    run_id: str = Field(primary_key=True)
    task_id: str = Field(index=True)
    op: str | None
    gpu: str | None
    dtype: str | None
    language: str | None
    command: str
    actor: str
    state: str
    sealed: bool
    outcome: str | None
    """As the seal says, or why it was aborted."""
    submit_attempts: int
    verify_attempts: int
    benchmark_attempts: int
    promote_attempts: int
    started_seq: int
    last_seq: int
    recorded_at: str


class CursorRow(HistoryTable, table=True):
    """The one row that says what the file was derived from, and by which projector."""

    __tablename__ = "cursor"
    ledger_id: str = Field(primary_key=True)
    seq: int
    event_hash: str
    schema_version: int
    projector_version: int
