"""Loads recorded evidence for the phases, from the ledger and the blobs only."""

from collections.abc import Callable
from itertools import chain

import orjson

from forge.app.incumbent import incumbent_kernel
from forge.app.machine.process_name import process_sha256
from forge.app.runs.recorded_evidence import captured_environment
from forge.app.runs.states import task_of
from forge.app.workspace import Workspace
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import Digest
from forge.domain.environment import Environment
from forge.domain.protocol import REPLAY, SLOPE
from forge.domain.task import HeldOut
from forge.errors import EnvironmentUnfit
from forge.events import (
    CandidateSubmitted,
    CandidateVerified,
    KernelPromoted,
)
from forge.executor import Site
from forge.lab.job import ContenderFile, Incumbent
from forge.lab.launch_plan.launcher import kept_plan
from forge.languages import find_language
from forge.pipeline.held_out import gets_feedback
from forge.pipeline.job import RecordedCandidate, simulated
from forge.pipeline.reused_judgement import Judgement, judged_earlier
from forge.pipeline.samples import Taken, parse_samples, protocol_of
from forge.projections.runs import RunState
from forge.sandbox.reply import ArtifactFile

CANDIDATE_STREAM = "candidate:"
"""Beginning of the name of a candidate's stream; its digest follows."""


def evidence_of(workspace: Workspace, run: RunState, site: Site, *, attempt: int) -> RecordedCandidate:
    """Return everything that the lab needs to judge the run's candidate at a site, byte for byte as it was submitted.

    The site's environment is recorded, once. The policy is stored, since it may have been edited after the run began.
    """
    assert run.submitted is not None
    task = task_of(run)
    submitted: CandidateSubmitted = run.submitted.event
    by_path = {file.path: file.sha256 for file in submitted.files.files}
    workspace.record_environment(site.environment, run_id=run.run_id)
    workspace.keep_policy()
    return RecordedCandidate(
        run_id=run.run_id,
        task=task,
        held_out=HeldOut.model_validate(orjson.loads(workspace.blobs.get(task.held_out_sha256))),
        submitted=submitted,
        files={name: workspace.blobs.get(by_path[name]) for name in REQUIRED_FILES},
        policy=workspace.policy,
        environment=site.environment,
        isolation=site.isolation,
        gates_sha256=site.gates_sha256,
        attempt=attempt,
        retry_of=run.error.seq if run.error else None,
        gpu=site.device,
        process_sha256=process_sha256(),
        draws_held_out=gets_feedback(run.submitted),
        contender_files=tuple(
            ContenderFile(described=one, source=workspace.blobs.get(one.sha256)) for one in task.contenders
        ),
    )


def artifact_of(workspace: Workspace, artifact_sha256: Digest | None) -> tuple[ArtifactFile, ...]:
    """Return what was built of a candidate when it was verified: built files, and its launch plan."""
    if artifact_sha256 is None:
        return ()
    listing = orjson.loads(workspace.blobs.get(artifact_sha256))
    return tuple(ArtifactFile(file["path"], workspace.blobs.get(file["sha256"])) for file in listing["files"])


def incumbent(workspace: Workspace, kernel: KernelPromoted, evidence: RecordedCandidate) -> Incumbent:
    """Return what the lab needs of the incumbent to measure a candidate beside it.

    Files built for another kind of processor aren't loaded: the lab builds the kernel again.
    """
    artifact = artifact_of(workspace, kernel.artifact_sha256)
    loadable = kept_plan(artifact) is not None or kernel.abi_key == evidence.environment.abi_key
    return Incumbent(
        files={file.path: workspace.blobs.get(file.sha256) for file in kernel.files},
        artifact=artifact if loadable else (),
        entry_point=kernel.entry_point,
    )


def loadable_artifact(
    workspace: Workspace, run_id: str, evidence: RecordedCandidate, verified: CandidateVerified
) -> tuple[ArtifactFile, ...]:
    """Return what was built of a candidate; raise EnvironmentUnfit if this kind of machine can't load it."""
    artifact = artifact_of(workspace, verified.artifact_sha256)
    require_loadable(run_id, evidence, artifact, captured_environment(workspace, verified.env_sha256))
    return artifact


def require_loadable(
    run_id: str, evidence: RecordedCandidate, artifact: tuple[ArtifactFile, ...], verified_on: Environment
) -> None:
    """Raise EnvironmentUnfit if a candidate was built and judged for another kind of machine than this one.

    A launch plan's device code runs on its GPU, whatever the host is. Without a plan, the built host code is loaded.
    """
    if simulated(evidence) or not find_language(evidence.task.language).builds or kept_plan(artifact) is not None:
        return
    differing = verified_on.abi_differences(evidence.environment)
    if differing:
        raise EnvironmentUnfit(
            f"run {run_id!r} was built and verified on a machine that differs from this one in "
            f"{', '.join(differing)}. A build made there may not run here, and a build made here wasn't judged",
            hint=f"forge run open {evidence.task.task_id}, and submit the candidate to that run on this machine",
        )


def earlier_samples(workspace: Workspace, run: RunState, environment: Environment) -> Taken | None:
    """Return the samples of this run's earlier attempts, to which the next attempt adds.

    None if they were taken on another machine, by another protocol, or beside another incumbent than today's: such
    samples can't be combined.
    """
    if run.failure is None:
        return None
    failure = run.failure.event
    if not _comparable(workspace, run, environment):
        return None
    digest = failure.workloads[0].samples_sha256 if failure.workloads else None
    if digest is None and failure.report_sha256 is not None:
        digest = orjson.loads(workspace.blobs.get(failure.report_sha256)).get("samples_sha256")
    stored = workspace.blobs.get(digest) if digest is not None else None
    return parse_samples(stored) if stored is not None and protocol_of(stored) in (SLOPE, REPLAY) else None


def _comparable(workspace: Workspace, run: RunState, environment: Environment) -> bool:
    failed, family = run.failure, task_of(run).family
    assert failed is not None
    incumbents = (incumbent_kernel(workspace, family), incumbent_kernel(workspace, family, before_seq=failed.seq))
    machines = (environment, captured_environment(workspace, failed.event.env_sha256))
    return incumbents[0] == incumbents[1] and machines[0].perf_key == machines[1].perf_key


def judged_before(workspace: Workspace, task_id: str) -> Callable[[Digest], int | None]:
    """Return a function from a candidate to the first event that judged it for a task; None if none did."""
    types = ("CandidateVerified", "CandidateRejected")

    def judged(candidate: Digest) -> int | None:
        of_candidate = workspace.ledger.read(stream=f"{CANDIDATE_STREAM}{candidate}", types=types)
        return next((one.seq for one in of_candidate if getattr(one.event, "task_id", None) == task_id), None)

    return judged


def earlier_judgement(workspace: Workspace, evidence: RecordedCandidate) -> Judgement | None:
    """Return the earlier judgement of this candidate; None if there is none.

    Only candidates of the same bytes or the same program are read; other submissions are passed over unparsed.
    """
    ledger, own = workspace.ledger, evidence.submitted
    streams = {own.stream()}
    if own.normalised_sha256 is not None:
        rows = ledger.rows(types=("CandidateSubmitted",))
        streams |= {row.stream for row in rows if own.normalised_sha256 in str(row.payload)}
    types = ("CandidateSubmitted", "CandidateVerified", "CandidateRejected")
    history = chain.from_iterable(ledger.read(stream=stream, types=types) for stream in streams)
    return judged_earlier(evidence, sorted(history, key=lambda one: one.seq))
