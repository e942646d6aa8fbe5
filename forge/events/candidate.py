"""Submitted candidates, their claims, and the assessment of these claims."""

from typing import Literal

from pydantic import Field

from forge.domain.budget import Count
from forge.domain.candidate import Candidate
from forge.domain.digest import Digest, is_unset
from forge.domain.evidence import GateResult
from forge.domain.verdict import Reason
from forge.events.fact import Fact


class CandidateSubmitted(Fact):
    """Five files were accepted and stored by content. Later events name the candidate by its digest."""

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
    """Digest of the program without comments, layout and docstrings. Candidates that differ only in these share it.

    Since version 2.
    """


class CandidateDuplicated(Fact):
    """A candidate with the same bytes was judged for the same task before."""

    run_id: str
    task_id: str
    candidate: Digest
    earlier_seq: int


class CandidateRejected(Fact):
    """A candidate was refused, at submission or on evidence."""

    run_id: str
    task_id: str
    candidate: Digest
    """Digest of the candidate. At the stage `submit` there is no candidate yet: the digest of the submitted files."""
    stage: Literal["submit", "screen", "build", "verify"]
    reason: Reason
    gates: tuple[GateResult, ...] = ()
    counterexample_sha256: Digest | None = None
    env_sha256: Digest | None = None
    gates_sha256: Digest | None = None
    """Digest of the judge's version. Since version 2, like the two fields below."""
    report_sha256: Digest | None = None
    """Digest of the full report, including findings in the sources. None at the stage `submit`."""
    reused_seq: int | None = None
    """Sequence number of an earlier judgement that was reused, of this candidate or of the same program."""
    simulated: bool | None = None
    """Whether an interpreter stood in for the target. None at the stage `submit`, and before version 3."""
    held_out_seed: Count | None = Field(default=None, exclude_if=is_unset)
    """Seed of the held-out shapes that were drawn for this candidate alone, after its bytes were fixed. None: those
    of the task were asked, or none."""


class ClaimRecorded(Fact):
    """An author, a person or another program made a claim about a candidate."""

    run_id: str
    candidate: Digest
    claim_id: str
    metric: str
    value: float
    unit: str
    workload: str
    baseline: str
    claimant: str


class ClaimAssessed(Fact):
    """A claim was compared with Forge's own measurement."""

    run_id: str
    candidate: Digest
    claim_id: str
    verdict: Literal["confirmed", "understated", "overstated", "refuted", "not_comparable"]
    """Result of the comparison. Version 1 had no `understated`: there, `confirmed` means not overstated."""
    measured_value: float | None
    measured_by_seq: int | None
    """Sequence number of the benchmark that measured it."""
