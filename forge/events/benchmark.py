"""Measured times, and the withdrawal of a measurement that turns out to be wrong."""

from pydantic import Field

from forge.domain.contender import ContenderStanding
from forge.domain.digest import Digest, is_empty, is_unset
from forge.domain.early_stop import EarlyStop
from forge.domain.evidence import Isolation, Timing, WorkloadTiming
from forge.domain.policy import BaselineKind
from forge.domain.tensors import Shape
from forge.domain.verdict import Reason
from forge.events.fact import Fact


class BaselineRecorded(Fact):
    """A baseline was timed, through the same path and in the same rounds as a candidate."""

    run_id: str
    task_id: str
    kind: BaselineKind
    shape: Shape
    timing: Timing
    env_sha256: Digest


class BenchmarkRecorded(Fact):
    """A verified candidate was timed against its baselines and met the promotion rule for each workload."""

    run_id: str
    task_id: str
    candidate: Digest
    attempt: int
    workloads: tuple[WorkloadTiming, ...] = Field(min_length=1)
    baseline_used: BaselineKind
    """Baseline that had to be beaten."""
    baseline_seqs: tuple[int, ...]
    isolation: Isolation
    env_sha256: Digest
    verified_seq: int
    report_sha256: Digest
    policy_sha256: Digest
    process_sha256: Digest | None = Field(default=None, exclude_if=is_unset)
    """Digest that names the process tree that measured. None: an event that is older than the field."""
    contenders: tuple[ContenderStanding, ...] = Field(default=(), exclude_if=is_empty)
    """Standing of every contender: measured in full, slower, failed, or not there. Left out of events without any,
    such as those from before contenders."""
    further_seqs: tuple[int, ...] = Field(default=(), exclude_if=is_empty)
    """Sequence numbers of the ShapeTimed events of the task's further shapes. Left out if the task has none."""


class ShapeTimed(Fact):
    """A verified candidate was timed at a further shape of its task, after it met the promotion rule at the first."""

    run_id: str
    task_id: str
    candidate: Digest
    attempt: int
    shape: Shape
    timing: WorkloadTiming | None
    """Times at this shape. None: it ended before there were any."""
    baseline_used: BaselineKind | None
    """Baseline that had to be beaten at this shape."""
    reason: Reason | None
    """Why the candidate isn't promoted for this shape. None: it met the promotion rule."""
    samples_sha256: Digest | None
    """Digest of all raw samples at this shape. None: there are none."""
    isolation: Isolation
    env_sha256: Digest
    verified_seq: int
    policy_sha256: Digest
    process_sha256: Digest | None
    """Digest that names the process tree that measured."""
    contenders: tuple[ContenderStanding, ...] = Field(default=(), exclude_if=is_empty)
    """What became of every contender at this shape."""


class BenchmarkFailed(Fact):
    """A verified candidate was timed and didn't meet the promotion rule, or the measurement allows no verdict."""

    run_id: str
    task_id: str
    candidate: Digest
    attempt: int
    reason: Reason
    workloads: tuple[WorkloadTiming, ...]
    """Workloads that were timed before it failed. Empty after an early stop."""
    baseline_used: BaselineKind | None
    env_sha256: Digest
    verified_seq: int
    report_sha256: Digest | None
    policy_sha256: Digest
    process_sha256: Digest | None = Field(default=None, exclude_if=is_unset)
    """Digest that names the process tree that measured. None: an event that is older than the field."""
    contenders: tuple[ContenderStanding, ...] = Field(default=(), exclude_if=is_empty)
    """Standing of every contender: measured in full, slower, failed, or not there. Left out of events without any,
    such as those from before contenders."""
    stopped: EarlyStop | None = Field(default=None, exclude_if=is_unset)
    """Figures of the first process pair, if it left no chance of a promotion and was the last. None: it was measured
    to the end, or the event is older than the field."""


class BenchmarkErrored(Fact):
    """A benchmark failed because of the machine, not because of the candidate."""

    run_id: str
    task_id: str
    candidate: Digest
    attempt: int
    detail: str
    retry_of: int | None
    env_sha256: Digest


class BenchmarkInvalidated(Fact):
    """A recorded benchmark was withdrawn and no longer counts."""

    candidate: Digest
    benchmark_seq: int
    why: str
    by: str


class ProfileCaptured(Fact):
    """A profiler measured a candidate."""

    run_id: str
    candidate: Digest
    tool: str
    tool_version: str
    kind: str
    """counters, trace or image."""
    metrics: dict[str, float]
    raw_sha256: Digest
    env_sha256: Digest
