"""Declares the tables of runs, candidates, benchmarks, refusals and claims, and of events about candidates."""

from sqlalchemy import Index, Text
from sqlmodel import Field

from forge.projections.history_table import CLUSTERED, HistoryTable


class RunRow(HistoryTable, table=True):
    """One run and how far it came."""

    __tablename__ = "runs"
    __table_args__ = (
        Index("runs_by_start", "started_seq"),
        Index("runs_by_task", "task_id", "started_seq"),
        Index("runs_by_state", "state", "started_seq"),
        CLUSTERED,
    )
    run_id: str = Field(primary_key=True)
    task_id: str
    op: str | None
    gpu: str | None
    dtype: str | None
    language: str | None
    command: str
    actor: str
    state: str
    sealed: bool
    outcome: str | None
    """Outcome in the seal, or the reason why it was aborted."""
    submit_attempts: int
    verify_attempts: int
    benchmark_attempts: int
    promote_attempts: int
    skills: str
    """Skills that its plan chose: a JSON list of `{"id", "sha256"}`."""
    template: str | None
    """Template of its prompt, by name; version and digest follow."""
    template_version: int | None
    template_sha256: str | None
    verified_seq: int | None
    """Event in which every gate passed, for the newest candidate."""
    simulated: bool | None
    """True if that verification, or the refusal of its candidate, ran on a simulated target."""
    gpu_s: float | None
    """Seconds of GPU time to time its candidates; None if none were recorded."""
    started_seq: int
    plan_seq: int | None
    prompt_seq: int | None
    ended_seq: int | None
    """Event that sealed or aborted it."""
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
    """Number within the event, from 1."""
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
    """`confirmation` if the winner was measured again, otherwise `first measurement`; for all figures in the row."""
    candidate_median_ns: float | None
    baseline: str | None
    baseline_used: bool | None
    """True if this is the baseline that had to be beaten."""
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
    """Event that withdrew the benchmark."""
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
    """First gate that failed, if one did."""
    stage: str
    """submit, screen, build, verify, benchmark or promote."""
    verdict: str
    """rejected or inconclusive."""
    reason_code: str
    message: str = Field(sa_type=Text)
    recorded_at: str


class ClaimRow(HistoryTable, table=True):
    """One claim about a candidate, and what was measured."""

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
    """Verdict on the claim. None until it is compared with a measurement."""
    assessed_seq: int | None
    measured_by_seq: int | None
    recorded_at: str


class TrailRow(HistoryTable, table=True):
    """One event about a candidate, or about the kernel it became."""

    __tablename__ = "trail"
    __table_args__ = CLUSTERED
    candidate: str = Field(primary_key=True)
    seq: int = Field(primary_key=True)
