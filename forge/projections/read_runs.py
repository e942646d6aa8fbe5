"""Compares each event of a run with the run's earlier events while a ledger is verified."""

from collections.abc import Iterator

from forge.events import Event, Recorded
from forge.events.benchmark import BaselineRecorded, BenchmarkFailed, BenchmarkRecorded, ShapeTimed
from forge.projections.runs import RunsState, phase_of, run_of
from forge.projections.state import State

_TIMED = (BenchmarkRecorded, BenchmarkFailed, ShapeTimed)
"""Events that name the verification which they stand on."""
_OF_A_BENCHMARK = (BaselineRecorded, ShapeTimed)
"""Events that a benchmark records before its own."""


def run_contradictions(recorded: Recorded[Event], runs: RunsState, state: State) -> Iterator[str]:
    """Yield what an event says against its run; both states are those before it."""
    run = runs.runs.get(run_of(recorded.event) or "")
    if run is None:
        return  # the fold of the runs refuses a run that never started
    event, phase = recorded.event, phase_of(recorded.event)
    task_id = getattr(event, "task_id", run.task_id)
    if task_id != run.task_id:
        yield f"task {task_id!r}, but run {run.run_id!r} is for {run.task_id!r}"
    if phase is not None and run.sealed:
        yield f"a result of run {run.run_id!r}, which had been sealed"
    if isinstance(event, _TIMED) and event.verified_seq != (run.verified.seq if run.verified else None):
        yield f"verification {event.verified_seq}, which isn't the last of run {run.run_id!r}"
    machine = getattr(event, "env_sha256", None) if phase or isinstance(event, _OF_A_BENCHMARK) else None
    if machine is not None and state.get("environments", machine) is None:
        yield f"machine {machine!r}, which isn't in the ledger before it"
