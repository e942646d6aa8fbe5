"""Sums up a run: its state, why it was refused, and the next command. It imports little, so that lists stay quick."""

from typing import TYPE_CHECKING

from forge.domain.another_run import IN_ANOTHER_RUN

if TYPE_CHECKING:
    from forge.projections.runs import RunState

NEXT_COMMAND = {
    "planned": "forge prompt {run}",
    "prompt_ready": "forge submit {run} DIR",
    "candidate_ready": "forge verify {run}",
    "verified": "forge bench {run}",
    "benchmarked": "forge promote {run}",
}
"""State of a run -> the command that comes next; a run in any other state has ended."""


def next_command(run_id: str, task_id: str, *, state: str, failed: str) -> str | None:
    """Return the command that continues a run; None at its end. `failed` is the reason of its failed benchmark."""
    if state == "verified" and failed.endswith(IN_ANOTHER_RUN):
        return f"forge run open {task_id}"
    following = NEXT_COMMAND.get(state)
    return following.format(run=run_id) if following else None


def next_of(run: "RunState") -> str | None:
    """Return the command that continues a run; None at its end. A run that can't be decided needs another run."""
    failed = run.failure.event.reason.message if run.failure else ""
    return next_command(run.run_id, run.task_id, state=run.state, failed=failed)


def simulated_of(run: "RunState") -> bool | None:
    """Return whether the judgement of a run's candidate was simulated; None if there is none, or it isn't known."""
    judged = run.verified or run.rejection
    return judged.event.simulated if judged else None


def run_summary(run: "RunState") -> dict[str, object]:
    """Return a run's state, its reason if it was refused, and the next command."""
    rejected = run.rejection.event.reason if run.rejection else None
    failed = run.failure.event.reason if run.failure else None
    reason = rejected or failed
    return {
        "run_id": run.run_id,
        "task_id": run.task_id,
        "state": run.state,
        "simulated": simulated_of(run),
        "sealed": run.sealed,
        "started_at": run.started.recorded_at,
        "candidate": run.submitted.event.candidate if run.submitted else None,
        "author": run.submitted.event.author if run.submitted else None,
        "reason": reason.model_dump(mode="json") if reason else None,
        "kernel_id": getattr(run.promotion.event, "kernel_id", None) if run.promotion else None,
        "next": next_of(run),
    }
