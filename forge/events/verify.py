"""Phases 6 to 9: what the gates saw."""

from typing import ClassVar

from pydantic import Field

from forge.domain.digest import Digest
from forge.domain.evidence import GateResult, Isolation, WorkloadErrors
from forge.domain.tensors import Shape
from forge.events.fact import Fact


class CandidateVerified(Fact):
    """Every gate passed."""

    TYPE: ClassVar[str] = "CandidateVerified"
    SCHEMA_VERSION: ClassVar[int] = 2
    run_id: str
    task_id: str
    candidate: Digest
    attempt: int
    artifact_sha256: Digest | None
    """What the builder made and the guest loaded; none for a language without a build."""
    workloads: tuple[WorkloadErrors, ...] = Field(min_length=1)
    shapes_verified: tuple[Shape, ...] = Field(min_length=1)
    gates: tuple[GateResult, ...] = Field(min_length=1)
    seeds_sha256: Digest
    """The randomness the inputs were drawn with, kept in the run's report."""
    isolation: Isolation
    env_sha256: Digest
    simulated: bool
    """Ran on something that stands for the target (an interpreter for a GPU): can never be promoted."""
    report_sha256: Digest
    policy_sha256: Digest
    gates_sha256: Digest | None = None
    """The version of the judge. Since version 2, as is the next."""
    reused_seq: int | None = None
    """The event that holds the judgement, where the same bytes had been judged before."""

    def stream(self) -> str:
        """The candidate's stream."""
        return f"candidate:{self.candidate}"


class VerificationErrored(Fact):
    """The machine failed, not the candidate."""

    TYPE: ClassVar[str] = "VerificationErrored"
    run_id: str
    task_id: str
    candidate: Digest
    attempt: int
    detail: str
    retry_of: int | None
    env_sha256: Digest

    def stream(self) -> str:
        """The candidate's stream."""
        return f"candidate:{self.candidate}"
