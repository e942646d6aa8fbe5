"""Has a run's verified candidate timed for a few seconds, and records an estimate that no decision reads."""

from forge.app.incumbent import incumbent_kernel
from forge.app.kernels.decisions import NOT_RECORDED
from forge.app.phases.timing_setups import verified_setup
from forge.app.runs.states import GATE, task_of, what_comes_next
from forge.app.workspace import Workspace
from forge.errors import PhaseOutOfOrder
from forge.events import SpeedupEstimated
from forge.events.estimate import AgainstBaseline
from forge.lab.finding import Failed
from forge.lab.job import Progress
from forge.lab.packages import require_lab
from forge.pipeline.estimate import Estimate, Estimated, estimate
from forge.pipeline.job import RecordedCandidate
from forge.projections.runs import RunState

Data = dict[str, object]


def estimate_of(workspace: Workspace, run: RunState, *, progress: Progress) -> Data:
    """Record an estimate of a candidate's speedups and return it; raise PhaseOutOfOrder or EnvironmentUnfit.

    A candidate that failed while it was timed gives no estimate, so nothing is recorded.
    """
    if run.verified is None:
        raise PhaseOutOfOrder(
            f"run {run.run_id!r} is {run.state}: expected a run whose candidate is verified",
            hint=what_comes_next(run),
        )
    workspace.ledger.require_writable()
    require_lab()
    to_beat = incumbent_kernel(workspace, task_of(run).family)
    setup = verified_setup(workspace, run, to_beat=to_beat, progress=progress)
    found = estimate(setup)
    told: Data = {"run_id": run.run_id, "decides": "nothing"}
    if isinstance(found, Failed):
        return told | NOT_RECORDED | {"failed": found.reason.model_dump(mode="json"), "against": []}
    return (
        told | record_estimate(workspace, setup.evidence, found) | {"minimum_speedup": task_of(run).minimum_speedup}
    )


def record_estimate(workspace: Workspace, evidence: RecordedCandidate, found: Estimated) -> Data:
    """Append an estimate beside the run, in a stream that no decision reads; return it and its place."""
    event = SpeedupEstimated(
        task_id=evidence.task.task_id,
        candidate=evidence.submitted.candidate,
        against=tuple(_against(one) for one in found.against),
        control=found.control,
        left_out=found.left_out,
        env_sha256=evidence.environment.env_sha256,
    )
    run_id = evidence.run_id
    workspace.record_environment(evidence.environment, run_id=run_id)
    place = workspace.ledger.stream_version(event.stream())
    appended = workspace.append((event,), run_id=run_id, key=f"estimate:{run_id}:{place}", actor=GATE)
    shown = event.model_dump(mode="json", include={"against", "control", "left_out"})
    return {"recorded": True, "seq": appended.first_seq, "failed": None} | shown


def _against(one: Estimate) -> AgainstBaseline:
    return AgainstBaseline(
        baseline=one.baseline, baseline_ns=one.baseline_ns, candidate_ns=one.candidate_ns, ratios=one.ratios
    )
