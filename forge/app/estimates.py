"""Has a run's verified candidate timed for a few seconds; nothing is recorded."""

from forge.app.ceilings import required_ceilings
from forge.app.incumbent import incumbent_kernel
from forge.app.phase_inputs import artifact_of, captured_environment, evidence_of, incumbent, require_loadable
from forge.app.runs import task_of, what_comes_next
from forge.app.site import executor_of
from forge.app.workspace import Workspace
from forge.errors import PhaseOutOfOrder
from forge.executor.local import require_lab
from forge.lab.finding import Failed
from forge.lab.job import Progress
from forge.pipeline.estimate import Estimate, estimate
from forge.pipeline.job import on_gpu
from forge.projections.runs import RunState

Data = dict[str, object]


def estimate_of(workspace: Workspace, run: RunState, *, progress: Progress) -> Data:
    """Return an estimate of a candidate's speedups as plain data; raise PhaseOutOfOrder or EnvironmentUnfit."""
    if run.verified is None:
        raise PhaseOutOfOrder(
            f"run {run.run_id!r} is {run.state}, an estimate needs a verified candidate", hint=what_comes_next(run)
        )
    require_lab()
    executor = executor_of(workspace)
    evidence = evidence_of(workspace, run, executor.site(workspace.policy), attempt=run.attempts.benchmark + 1)
    artifact = artifact_of(workspace, run.verified.event.artifact_sha256)
    verified_on = captured_environment(workspace, run.verified.event.env_sha256)
    require_loadable(run.run_id, evidence, artifact, verified_on)
    to_beat = incumbent_kernel(workspace, evidence.task.family)
    found = estimate(
        evidence,
        executor,
        artifact,
        incumbent=None if to_beat is None else incumbent(workspace, to_beat, evidence),
        ceilings=required_ceilings(workspace, executor, evidence.environment) if on_gpu(evidence) else None,
        rng=workspace.rng,
        progress=progress,
    )
    told: Data = {"run_id": run.run_id, "recorded": False, "decides": "nothing"}
    if isinstance(found, Failed):
        return told | {"failed": found.reason.model_dump(mode="json"), "against": []}
    return told | {
        "failed": None,
        "against": [_against(one) for one in found.against],
        "control": list(found.control),
        "left_out": list(found.left_out),
        "minimum_speedup": task_of(run).minimum_speedup,
    }


def _against(one: Estimate) -> Data:
    return {
        "baseline": one.baseline,
        "baseline_ns": one.baseline_ns,
        "candidate_ns": one.candidate_ns,
        "ratios": list(one.ratios),
    }
