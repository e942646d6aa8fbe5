"""Phase 5: what was handed in, what it claims, and where those claims ended."""

from typing import ClassVar, Literal

from forge.domain.candidate import Candidate
from forge.domain.digest import Digest
from forge.domain.evidence import GateResult
from forge.domain.verdict import Reason
from forge.events.fact import Fact


class CandidateSubmitted(Fact):
    """Five files were accepted and stored by content; from here on the candidate is its digest."""

    TYPE: ClassVar[str] = "CandidateSubmitted"
    SCHEMA_VERSION: ClassVar[int] = 2
    run_id: str
    task_id: str
    candidate: Digest
    files: Candidate
    author: str
    parents: tuple[Digest, ...] = ()
    hypothesis: str | None = None
    layer: str | None = None
    axis: str | None = None
    normalised_sha256: Digest | None = None
    """The program without comments, layout and docstrings: twins have the same. Since version 2."""

    def stream(self) -> str:
        """The candidate's stream."""
        return f"candidate:{self.candidate}"


class CandidateDuplicated(Fact):
    """The same bytes were judged for the same task before."""

    TYPE: ClassVar[str] = "CandidateDuplicated"
    run_id: str
    task_id: str
    candidate: Digest
    earlier_seq: int

    def stream(self) -> str:
        """The candidate's stream."""
        return f"candidate:{self.candidate}"


class CandidateRejected(Fact):
    """A candidate was refused, at the door or on evidence."""

    TYPE: ClassVar[str] = "CandidateRejected"
    SCHEMA_VERSION: ClassVar[int] = 2
    run_id: str
    task_id: str
    candidate: Digest
    """At the stage `submit`, where no candidate exists yet: the digest of what was offered."""
    stage: Literal["submit", "screen", "build", "verify"]
    reason: Reason
    gates: tuple[GateResult, ...] = ()
    counterexample_sha256: Digest | None = None
    env_sha256: Digest | None = None
    gates_sha256: Digest | None = None
    """The version of the judge. Since version 2, as are the two below."""
    report_sha256: Digest | None = None
    """Everything that was seen, what the sources showed among it; none at the stage `submit`."""
    reused_seq: int | None = None
    """The event that holds the judgement, where this candidate or its twin had been judged before."""

    def stream(self) -> str:
        """The candidate's stream."""
        return f"candidate:{self.candidate}"


class ClaimRecorded(Fact):
    """Something was said about a candidate by someone who isn't Forge."""

    TYPE: ClassVar[str] = "ClaimRecorded"
    run_id: str
    candidate: Digest
    claim_id: str
    metric: str
    value: float
    unit: str
    workload: str
    baseline: str
    claimant: str

    def stream(self) -> str:
        """The candidate's stream."""
        return f"candidate:{self.candidate}"


class ClaimAssessed(Fact):
    """A claim was held against what Forge measured."""

    TYPE: ClassVar[str] = "ClaimAssessed"
    SCHEMA_VERSION: ClassVar[int] = 2
    run_id: str
    candidate: Digest
    claim_id: str
    verdict: Literal["confirmed", "understated", "overstated", "refuted", "not_comparable"]
    """Version 1 had no `understated`: there, `confirmed` means not overstated."""
    measured_value: float | None
    measured_by_seq: int | None
    """The benchmark that measured it."""

    def stream(self) -> str:
        """The candidate's stream."""
        return f"candidate:{self.candidate}"
