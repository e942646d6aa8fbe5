"""Finds jobs that were lost with their machine, asks for them again, and says what became of each."""

from collections.abc import Iterable

from forge.app.phases.phase_answer import Data, phase_answer
from forge.app.work.requests import request_work
from forge.app.workspace import Workspace
from forge.domain.verdict import Reason
from forge.events import BenchmarkErrored, Recorded, VerificationErrored
from forge.projections.runs import WAITING, RunState


def lost_job(run: RunState) -> Recorded[VerificationErrored | BenchmarkErrored] | None:
    """Return the fault of a machine that ended a run's last job; None if it has a later answer."""
    answers = (run.verified, run.benchmark, run.failure, run.rejection)
    answered = max((one.seq for one in answers if one is not None), default=0)
    stands = run.error is not None and run.error.seq > answered and run.state in WAITING["promote"]
    return run.error if stands else None


def ask_again(workspace: Workspace, run_ids: Iterable[str], *, unserved: bool) -> bool:
    """Ask again for each job that was lost; return whether there was one.

    With `unserved`, a request that no machine answered counts too: it stands as it is.
    """
    found = False
    for run in map(workspace.find_run, run_ids):
        if run.request is None and lost_job(run) is not None:
            request_work(workspace, run, "promote")
            found = True
        found = found or (unserved and run.request is not None)
    return found


def unanswered(workspace: Workspace, run: RunState) -> dict[str, Data]:
    """Return the phase at which a requested run stopped without a decision, and why; nothing if it has a decision."""
    phase = "verify" if run.verified is None else "bench" if run.benchmark is None else "promote"
    if (lost := lost_job(run)) is not None:
        return {phase: phase_answer(lost.event, workspace=workspace)}
    if run.promotion is not None or run.rejection is not None or run.failure is not None:
        return {}
    reason = Reason(code="INFRASTRUCTURE", message=f"no machine answered for the run, which is {run.state}")
    candidate = run.submitted.event.candidate if run.submitted else None
    return {phase: {"verdict": "inconclusive", "candidate": candidate, "reason": reason.model_dump(mode="json")}}
