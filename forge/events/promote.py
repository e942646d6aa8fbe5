"""Promotions, denials, and the later end of a promotion."""

from typing import Literal

from pydantic import Field

from forge.domain.candidate import CandidateFile
from forge.domain.digest import Digest, is_unset
from forge.domain.evidence import Coverage, GateResult, Interval, Isolation, WorkloadTiming
from forge.domain.kernel_domain import KernelDomain
from forge.domain.policy import BaselineKind
from forge.domain.replication import Outcome, ReplicatedSpeedup
from forge.domain.task import Task
from forge.domain.verdict import Reason
from forge.events.fact import Fact

Severity = Literal["wrong_result", "unsafe", "evidence_invalid", "withdrawn"]
"""Kind of reason why a kernel must not be used: wrong results, unsafe behaviour, invalid evidence, or its owner's
wish."""


class KernelPromoted(Fact):
    """A candidate became the next version of its family. A registry entry shows only what is stored or named here."""

    run_id: str
    kernel_id: str
    family: str
    version: int = Field(ge=1)
    task_id: str
    task: Task
    candidate: Digest
    files: tuple[CandidateFile, ...]
    entry_point: str
    artifact_sha256: Digest | None
    author: str
    skills: tuple[str, ...]
    speedup: Interval
    baseline: BaselineKind
    candidate_median_ns: float = Field(gt=0)
    baseline_median_ns: float = Field(gt=0)
    policy_sha256: Digest
    gates: tuple[GateResult, ...] = Field(min_length=1)
    verified_seq: int
    benchmark_seq: int
    env_sha256: Digest
    perf_key: Digest
    abi_key: Digest
    coverage: Coverage
    evidence_level: Literal["op_level"] = "op_level"
    benchmark_scope: Literal["microbenchmark"] = "microbenchmark"
    domain: KernelDomain | None = Field(default=None, exclude_if=is_unset)
    """Domain in which it was verified. None: all of the operation's contract."""


class PromotionDenied(Fact):
    """The recorded evidence doesn't support a promotion."""

    run_id: str
    family: str
    task_id: str
    candidate: Digest
    reason: Reason
    gates: tuple[GateResult, ...]
    policy_sha256: Digest


class KernelDeprecated(Fact):
    """A kernel version is still correct, but another one should be used."""

    kernel_id: str
    family: str
    reason: str
    superseded_by: str | None = None


class KernelRevoked(Fact):
    """A kernel version must not be used."""

    kernel_id: str
    family: str
    reason: str
    severity: Severity
    evidence: tuple[str, ...] = ()


class ReplicationRecorded(Fact):
    """A promoted kernel was measured again by another process, at least an hour later or on another machine."""

    kernel_id: str
    family: str
    candidate: Digest
    benchmark_seq: int
    """Sequence number of the first measurement."""
    outcome: Outcome
    reason: Reason | None
    """Reason why the first measurement isn't confirmed. None: it held."""
    workloads: tuple[WorkloadTiming, ...]
    """The second measurement; empty if it ended before there were times."""
    baseline_used: BaselineKind | None
    """Fastest baseline of the second measurement, over which the rule was applied again."""
    comparisons: tuple[ReplicatedSpeedup, ...]
    """The two measurements over the baseline of the promotion, for each regime that the policy names."""
    isolation: Isolation
    process_sha256: Digest
    """Digest that names the process tree that measured."""
    env_sha256: Digest
    report_sha256: Digest
    policy_sha256: Digest
    """Digest of the policy of the promotion, which applies again."""
