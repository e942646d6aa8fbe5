"""Gathers from the ledger what a measurement of a verified candidate on this machine needs."""

from forge.app.machine.ceilings import ceilings_of
from forge.app.machine.chosen_executor import executor_of
from forge.app.phases.phase_inputs import evidence_of, incumbent, loadable_artifact
from forge.app.workspace import Workspace
from forge.events import KernelPromoted
from forge.executor import Executor
from forge.lab.job import Progress
from forge.pipeline.job import RecordedCandidate
from forge.pipeline.timing_setup import TimingSetup
from forge.projections.runs import RunState
from forge.sandbox.reply import ArtifactFile


def verified_setup(
    workspace: Workspace, run: RunState, *, to_beat: KernelPromoted | None, progress: Progress
) -> TimingSetup:
    """Return the setup for what a verification kept; raise EnvironmentUnfit if it can't be loaded here."""
    assert run.verified is not None
    executor = executor_of(workspace)
    evidence = evidence_of(workspace, run, executor.site(workspace.policy), attempt=run.attempts.benchmark + 1)
    artifact = loadable_artifact(workspace, run.run_id, evidence, run.verified.event)
    return setup_of(workspace, executor, evidence, artifact, to_beat=to_beat, progress=progress)


def setup_of(
    workspace: Workspace,
    executor: Executor,
    evidence: RecordedCandidate,
    artifact: tuple[ArtifactFile, ...],
    *,
    to_beat: KernelPromoted | None,
    progress: Progress,
) -> TimingSetup:
    """Return the setup for a candidate's built files; `to_beat` is the promoted kernel to compare with."""
    return TimingSetup(
        evidence=evidence,
        executor=executor,
        artifact=artifact,
        incumbent=None if to_beat is None else incumbent(workspace, to_beat, evidence),
        ceilings=ceilings_of(workspace, executor, evidence),
        rng=workspace.rng,
        progress=progress,
    )
