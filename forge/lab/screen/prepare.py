"""Prepares a draft for the race: its sources are read, it is built, and a draft for a GPU is asked and captured.

Nothing of it is a verdict. A draft that the machine couldn't build or run in time is a failed trial, and no error:
the next draft may still be tried.
"""

import dataclasses
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from forge.domain.authoring import Draft, FailedTrial
from forge.domain.candidate import Metadata
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.input_kind import InputKind
from forge.domain.plan import NoPlan
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.calls import artifact
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.launch_plan.capture import capture
from forge.lab.launch_plan.tuning import measured_configurations
from forge.lab.sources.screen import examine_sources
from forge.sandbox.plans import Captured
from forge.sandbox.reply import ArtifactFile, Refused

SCREENING_LIMIT_S = 60.0
"""Processor time of one thread of a draft's guest in seconds, at most: a few calls at one shape."""
KINDS: tuple[InputKind, ...] = ("normal", "uniform", "large", "small")
"""Kinds of values that a draft is asked, if the operation is defined there."""
Stage = Literal["sources", "build", "load", "check", "plan", "time"]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A draft that was built. For a GPU it was also asked; for a processor it is asked in the process that times."""

    job: Job
    artifact: tuple[ArtifactFile, ...]
    plan: Captured | None
    """Launch plan of a draft for a GPU."""


def prepare(job: Job, draft: Draft) -> Fit | FailedTrial:
    """Build a draft in guests of its own; on a GPU also ask it at the shape that its author was shown."""
    drafted = job_of_draft(job, draft)
    if isinstance(drafted, FailedTrial):
        return drafted
    try:
        return _prepared(drafted)
    except EnvironmentUnfit as error:
        return FailedTrial(stage="build", reason=Reason(code="INFRASTRUCTURE", message=error.message[:2000]))


def job_of_draft(job: Job, draft: Draft) -> Job | FailedTrial:
    """Return the job of one draft; its limits are those of a screening, and it has no held-out shapes."""
    if set(draft.files) != set(REQUIRED_FILES):
        expected = ", ".join(REQUIRED_FILES)
        return _bad(f"the draft has the files {', '.join(sorted(draft.files))}: expected {expected}")
    try:
        metadata = Metadata.model_validate_json(draft.files["metadata.json"])
    except ValidationError as error:
        return _bad(f"metadata.json: {error.errors()[0]['msg']}")
    if (metadata.op, metadata.language) != (job.operation.name, job.language.name):
        return _bad(
            f"metadata.json is for {metadata.op!r} in {metadata.language!r}: "
            f"expected {job.operation.name!r} in {job.language.name!r}"
        )
    limit_s = min(job.policy.verify_limit_s, SCREENING_LIMIT_S)
    return dataclasses.replace(
        job,
        files={name: text.encode() for name, text in draft.files.items()},
        metadata=metadata,
        entry_point=metadata.entry_point or metadata.op,
        held_out=(),
        policy=job.policy.model_copy(update={"verify_limit_s": limit_s, "benchmark_limit_s": limit_s}),
    )


def _prepared(job: Job) -> Fit | FailedTrial:
    screening = examine_sources(
        job.files["kernel.py"].decode(),
        metadata=job.metadata,
        language=job.language,
        entry_point=job.entry_point,
        forbids=job.language.forbids,
    )
    if isinstance(screening.finding, Failed):
        return failed_trial("sources", screening.finding)
    files: tuple[ArtifactFile, ...] = ()
    if job.language.builds:
        built = artifact.build_artifact(job)
        finding = artifact.finding(built)
        if isinstance(finding, Failed) or isinstance(built, Refused):
            assert isinstance(finding, Failed), "a refused build is a failure"
            return failed_trial("build", finding)
        files = built.files
    if job.device == "cpu":
        return Fit(job=job, artifact=files, plan=None)
    return _planned(job, files)


def wrong_answer(kernel: LoadedKernel) -> Failed | None:
    """Ask a loaded draft a few kinds of values at the task's shape; return the first wrong answer, if any."""
    for case in kernel.cases(kernel.shape, kernel.definition.kinds(KINDS)):
        checked = kernel.check([case])
        if isinstance(checked, Failed):
            return checked
    return None


def _planned(job: Job, files: tuple[ArtifactFile, ...]) -> Fit | FailedTrial:
    """Ask a draft for a GPU, and list its launches."""
    limits = job.limits(job.policy.verify_limit_s)
    with (
        staged(job, artifact.staged_files(job, files), {}) as stage,
        loaded(job, stage, limits, label="screening") as kernel,
    ):
        if isinstance(kernel, Failed):
            return failed_trial("load", kernel)
        wrong = wrong_answer(kernel)
        if wrong is not None:
            return failed_trial("check", wrong)
        tuned = measured_configurations(kernel)
        captured = tuned if isinstance(tuned, Failed) else capture(job, kernel)
    match captured:
        case Failed():
            return failed_trial("plan", captured)
        case NoPlan(kind=kind, detail=detail):
            message = f"no launch plan ({kind}): {detail[:200]}"
            return FailedTrial(stage="plan", reason=Reason(code="STATIC_POLICY", message=message))
        case Captured():
            return Fit(job=job, artifact=files, plan=captured)


def failed_trial(stage: Stage, failed: Failed) -> FailedTrial:
    """Return a finding of the lab as a trial, with the end of its log where an exception says what it was."""
    said = [line.strip() for line in failed.log.splitlines() if line.strip()]
    last = f"; {said[-1][:200]}" if said and failed.reason.code in ("COMPILE_ERROR", "RUNTIME_ERROR") else ""
    return FailedTrial(
        stage=stage, reason=Reason(code=failed.reason.code, message=f"{failed.reason.message}{last}"[:2000])
    )


def without_verdict(error: EnvironmentUnfit) -> FailedTrial:
    """Return the machine's fault as a trial, which says nothing about its draft."""
    return FailedTrial(stage="time", reason=Reason(code="INFRASTRUCTURE", message=error.message[:2000]))


def _bad(message: str) -> FailedTrial:
    return FailedTrial(stage="sources", reason=Reason(code="BAD_SUBMISSION", message=message[:2000]))
