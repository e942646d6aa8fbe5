"""Finds one run in a long ledger, by index: only the run's own events are read."""

from itertools import chain

import orjson

from forge.errors import LedgerCorrupt, RunNotFound
from forge.events.create import TaskCreated
from forge.events.run import RunStarted
from forge.ledger.store import Ledger
from forge.projections.fold import holds
from forge.projections.runs import EMPTY, RunState, fold, the_run

NEWEST = "last"
"""Name that a user gives for the newest run."""
STREAM = "run:"
"""Beginning of the name of a run's stream."""


def find_run(ledger: Ledger, name: str) -> RunState:
    """Return the run that `name` means: its id, a unique beginning of it, or `last`; raise RunNotFound."""
    if name == NEWEST:
        newest = ledger.newest(RunStarted.TYPE)
        if not holds(newest, RunStarted):
            raise RunNotFound("there is no run yet", hint="forge task create --help")
        return run_state(ledger, newest.event.run_id)
    known = [stream.removeprefix(STREAM) for stream in ledger.streams(STREAM + name)] if name else []
    return run_state(ledger, the_run(known, name))


def run_state(ledger: Ledger, run_id: str) -> RunState:
    """Return a run's state, from the events correlated with it and from its task, which other runs may share."""
    started = next(ledger.read(stream=f"{STREAM}{run_id}", limit=1), None)
    if not holds(started, RunStarted):
        raise LedgerCorrupt(f"run {run_id!r} has events and never started", hint="forge ledger verify")
    task = ledger.read(stream=f"task:{started.event.task_id}", types=(TaskCreated.TYPE,))
    return fold(EMPTY, chain(task, ledger.read(correlation_id=run_id))).runs[run_id]


def experiments(ledger: Ledger, task_id: str) -> int:
    """Return how many runs of a task were started."""
    started = ledger.rows(types=(RunStarted.TYPE,))
    return sum(orjson.loads(row.payload)["task_id"] == task_id for row in started)
