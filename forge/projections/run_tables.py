"""Tables about what was tried: runs, candidates, benchmarks, refusals, claims, and the trail of a candidate."""

from sqlalchemy import Index, Text
from sqlmodel import Field

from forge.projections.history_table import CLUSTERED, HistoryTable


class RunRow(HistoryTable, table=True):
    """One run and how far it came."""

    __tablename__ = "runs"
    __table_args__ = CLUSTERED
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
    skills: str
    """Which its plan chose: a JSON list of `{"id", "sha256"}`."""
    template: str | None
    """Its prompt's, by name; the next two likewise."""
    template_version: int | None
    template_sha256: str | None
    verified_seq: int | None
    """Where every gate passed, for the candidate that was submitted last."""
    simulated: bool | None
    """Whether that ran on something that stands for the target."""
    gpu_s: float | None
    """Seconds that a GPU computed to time its candidates; None where none was recorded."""
    started_seq: int
    plan_seq: int | None
    prompt_seq: int | None
    ended_seq: int | None
    """Sealed or aborted."""
    last_seq: int
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
    __table_args__ = (
        Index(
            "benchmarks_by_candidate",
            *("candidate", "seq", "line"),
            *("candidate_median_ns", "speedup", "low", "high", "recorded_at"),  # a candidate's history, without more
        ),
        CLUSTERED,
    )
    seq: int = Field(primary_key=True)
    line: int = Field(primary_key=True)
    """1.. within the event."""
    run_id: str
    candidate: str
    task_id: str
    op: str | None
    gpu: str | None
    dtype: str | None
    shape: str | None
    """Canonical JSON."""
    env_sha256: str
    perf_key: str | None
    driver: str | None
    torch: str | None
    triton: str | None
    source: str | None
    """`confirmation` where the winner was measured once more, else `first measurement`: of all figures in the row."""
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
    __table_args__ = (
        Index("rejections_by_reason", "reason_code", "gate", "task_id"),
        Index("rejections_by_task", "task_id", "reason_code", "gate"),
    )
    seq: int = Field(primary_key=True)
    run_id: str
    candidate: str
    task_id: str
    op: str | None
    gpu: str | None
    dtype: str | None
    gate: str | None
    """The first that failed, if one did."""
    stage: str
    """submit, screen, build, verify, benchmark or promote."""
    verdict: str
    """rejected or inconclusive."""
    reason_code: str
    message: str = Field(sa_type=Text)
    recorded_at: str


class ClaimRow(HistoryTable, table=True):
    """Something said about a candidate, and what was measured."""

    __tablename__ = "claims"
    __table_args__ = CLUSTERED
    run_id: str = Field(primary_key=True)
    claim_id: str = Field(primary_key=True)
    seq: int
    candidate: str
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


class TrailRow(HistoryTable, table=True):
    """One event about a candidate, or about the kernel it became."""

    __tablename__ = "trail"
    __table_args__ = CLUSTERED
    candidate: str = Field(primary_key=True)
    seq: int = Field(primary_key=True)
