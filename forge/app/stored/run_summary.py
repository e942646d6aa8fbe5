"""Sums up a run: its state, why it was refused, and the next command."""

from typing import TYPE_CHECKING

from forge.app.stored.next_command import next_command

if TYPE_CHECKING:
    from forge.projections.runs import RunState


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
