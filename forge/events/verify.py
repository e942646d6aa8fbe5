"""The results of the gates."""

from pydantic import Field

from forge.domain.budget import Count
from forge.domain.digest import Digest, is_unset
from forge.domain.evidence import GateResult, Isolation, WorkloadErrors
from forge.domain.kernel_domain import KernelDomain
from forge.domain.tensors import Shape
from forge.events.fact import Fact


class CandidateVerified(Fact):
    """Every gate passed."""

    run_id: str
    task_id: str
    candidate: Digest
    attempt: int
    artifact_sha256: Digest | None
    """Digest of the built artifact that the guest loaded. None for a language without a build."""
    workloads: tuple[WorkloadErrors, ...] = Field(min_length=1)
    shapes_verified: tuple[Shape, ...] = Field(min_length=1)
    gates: tuple[GateResult, ...] = Field(min_length=1)
    seeds_sha256: Digest
    """Digest of the seeds that the inputs were drawn with. The run's report holds the seeds."""
    isolation: Isolation
    env_sha256: Digest
    simulated: bool
    """True if it ran on a substitute for the target, such as an interpreter for a GPU. It can never be promoted."""
    report_sha256: Digest
    policy_sha256: Digest
    gates_sha256: Digest | None = None
    """Digest of the judge's version. Since version 2, like the next field."""
    reused_seq: int | None = None
    """Sequence number of an earlier judgement of the same bytes that was reused."""
    domain: KernelDomain | None = Field(default=None, exclude_if=is_unset)
    """Domain that the candidate declares, with its limit on elements resolved; the gates asked inside it. None: all
    of the operation's contract."""
    held_out_seed: Count | None = Field(default=None, exclude_if=is_unset)
    """Seed of the held-out shapes that were drawn for this candidate alone, after its bytes were fixed. None: those
    of the task were asked."""


class VerificationErrored(Fact):
    """A verification failed because of the machine, not because of the candidate."""

    run_id: str
    task_id: str
    candidate: Digest
    attempt: int
    detail: str
    retry_of: int | None
    env_sha256: Digest
