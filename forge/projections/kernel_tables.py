"""Declares the tables of tasks, machines and kernels."""

from sqlalchemy import Index, Text
from sqlmodel import Field

from forge.projections.history_table import CLUSTERED, HistoryTable


class TaskRow(HistoryTable, table=True):
    """One task, as it was first recorded."""

    __tablename__ = "tasks"
    __table_args__ = CLUSTERED
    task_id: str = Field(primary_key=True)
    op: str
    gpu: str
    dtype: str
    language: str
    shape: str
    """Canonical JSON."""
    seq: int
    recorded_at: str


class EnvironmentRow(HistoryTable, table=True):
    """One machine, as it was first described."""

    __tablename__ = "environments"
    __table_args__ = CLUSTERED
    env_sha256: str = Field(primary_key=True)
    perf_key: str
    abi_key: str
    gpu: str | None
    """Slug of its GPU; None without a GPU."""
    gpu_arch: str | None
    driver: str | None
    torch: str | None
    triton: str | None
    seq: int


class KernelRow(HistoryTable, table=True):
    """One promoted kernel version as it stands now."""

    __tablename__ = "kernels"
    __table_args__ = (
        Index("kernels_by_slot", "op", "gpu", "dtype", "low"),
        Index("kernels_by_benchmark", "benchmark_seq"),
        Index("kernels_by_run", "run_id"),
        Index("kernels_by_task", "task_id", "status"),
        CLUSTERED,
    )
    kernel_id: str = Field(primary_key=True)
    family: str
    version: int
    status: str
    status_reason: str | None
    status_seq: int
    superseded_by: str | None
    deprecated_seq: int | None
    """Event of the latest deprecation."""
    invalidated_seq: int | None
    """Event of the first withdrawal of the benchmark that it was promoted on."""
    revoked_seq: int | None
    """Event of the first revocation, which is final."""
    evidence: str
    """`provisional`, or `replicated` once a second measurement held."""
    held_seq: int | None
    """Event of the first replication that held."""
    contradicted_seq: int | None
    """Event of the first replication that contradicts the measurement; it is final."""
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
    environment_seq: int | None
    verified_seq: int
    benchmark_seq: int
    promoted_seq: int = Field(index=True)
    recorded_at: str


class FamilyRow(HistoryTable, table=True):
    """Number of versions of a family; no number is used twice."""

    __tablename__ = "families"
    __table_args__ = CLUSTERED
    family: str = Field(primary_key=True)
    versions: int


class KernelDocumentRow(HistoryTable, table=True):
    """What the published documents show of one kernel, as canonical JSON."""

    __tablename__ = "kernel_documents"
    __table_args__ = CLUSTERED
    kernel_id: str = Field(primary_key=True)
    entry: str = Field(sa_type=Text)
    """Its entry in `verified_kernels.json`."""
    lookup: str = Field(sa_type=Text)
    """Its line in the lookup snapshot."""
    rank: str = Field(sa_type=Text)
    """Its line in `leaderboard.json`, without its rank."""


class OperationRow(HistoryTable, table=True):
    """One operation's newest description, so that programs can call its kernels in place of their own."""

    __tablename__ = "operations"
    __table_args__ = CLUSTERED
    op: str = Field(primary_key=True)
    description_sha256: str
    reference_sha256: str
    seq: int


class ModelMeasurementRow(HistoryTable, table=True):
    """One measurement of a whole model, with and without adopted kernels."""

    __tablename__ = "model_measurements"
    seq: int = Field(primary_key=True)
    model: str
    model_sha256: str
    gpu: str
    mode: str
    conclusive: bool
    document: str = Field(sa_type=Text)
    """Canonical JSON: the event with its number and time."""


class InvalidationRow(HistoryTable, table=True):
    """One benchmark that no longer counts, and the first event that withdrew it."""

    __tablename__ = "invalidations"
    benchmark_seq: int = Field(primary_key=True)
    seq: int
    why: str = Field(sa_type=Text)


class SpeedupRow(HistoryTable, table=True):
    """The sum behind a slot's geometric mean, over accepted measurements that still count."""

    __tablename__ = "speedups"
    __table_args__ = CLUSTERED
    op: str = Field(primary_key=True)
    gpu: str = Field(primary_key=True)
    dtype: str = Field(primary_key=True)
    measurements: int
    log_sum: float
    """Sum of the natural logarithms of the speedups."""
    geomean: float | None


class LatestSpeedupRow(HistoryTable, table=True):
    """A candidate's newest measurement that counts, for each task, baseline and kind of machine it was timed on."""

    __tablename__ = "latest_speedups"
    __table_args__ = (Index("latest_speedups_by_slot", "op", "gpu", "dtype", "shape", "baseline"), CLUSTERED)
    candidate: str = Field(primary_key=True)
    task_id: str = Field(primary_key=True)
    op: str = Field(primary_key=True)
    gpu: str = Field(primary_key=True)
    dtype: str = Field(primary_key=True)
    shape: str = Field(primary_key=True)
    """Canonical JSON."""
    baseline: str = Field(primary_key=True)
    perf_key: str = Field(primary_key=True)
    """Key under which timings may be compared."""
    driver: str | None
    torch: str | None
    triton: str | None
    baseline_used: bool
    """True if this is the baseline that had to be beaten."""
    verdict: str
    """accepted, or rejected as too slow; candidates refused for other reasons have no measured speed."""
    measurements: int
    """Number of measurements that count; this row is the newest."""
    seq: int
    line: int
    source: str
    """`confirmation` if the winner was measured again, otherwise `first measurement`."""
    candidate_median_ns: float
    baseline_median_ns: float
    speedup: float
    low: float
    high: float
    floor_fraction: float
    recorded_at: str


class RecentTimesRow(HistoryTable, table=True):
    """How long a kernel took, on its machine and at its shape: its newest ten times, and the ten before."""

    __tablename__ = "recent_times"
    __table_args__ = CLUSTERED
    kernel_id: str = Field(primary_key=True)
    shape: str
    perf_key: str
    newest_ns: float | None
    """Mean of the newest ten times in nanoseconds."""
    earlier_ns: float | None
    """Mean of the ten times before; None if there are no more than ten."""
    slower: float | None
    """`newest_ns / earlier_ns`."""
