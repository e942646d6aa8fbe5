"""Finds one run in a long ledger, by index: only the run's own events are read."""

import re
from collections.abc import Iterable
from itertools import chain

import orjson

from forge.errors import LedgerCorrupt, RunNotFound
from forge.events.create import TaskCreated
from forge.events.run import RunStarted
from forge.ledger.store import Ledger
from forge.projections.fold import holds
from forge.projections.runs import EMPTY, RunState, fold

NEWEST = re.compile(r"last(?:-([0-9]{1,9}))?", re.ASCII)
"""Names that a user gives for the newest run, `last`, and for the Nth before it, `last-N`."""
NUMBERED = re.compile(r"r([1-9][0-9]{0,8})", re.ASCII)
"""A run's short name: its number in the order in which runs were started. An id begins with the year."""
STREAM = "run:"
"""Beginning of the name of a run's stream."""
SHOWN_RUNS = 3
"""Number of runs that a message names if a name means several. Chosen; a message with more is hard to read."""


def find_run(ledger: Ledger, name: str) -> RunState:
    """Return the run that `name` means: its id or a beginning of it, `last`, `last-N` or `r12`; raise RunNotFound."""
    if (placed := NEWEST.fullmatch(name)) is not None:
        return run_state(ledger, _started_before(ledger, name, int(placed[1] or 0)))
    if (numbered := NUMBERED.fullmatch(name)) is not None:
        return run_state(ledger, _started_as(ledger, name, int(numbered[1])))
    known = [stream.removeprefix(STREAM) for stream in ledger.streams(STREAM + name)] if name else []
    return run_state(ledger, the_run(known, name))


def the_run(known: Iterable[str], name: str) -> str:
    """Return the run id `name`, or the only one that begins so; raise RunNotFound."""
    fitting = sorted(run_id for run_id in known if name and run_id.startswith(name))
    if name in fitting or len(fitting) == 1:
        return name if name in fitting else fitting[0]
    shown = ", ".join(fitting[:SHOWN_RUNS])
    more = f", and {len(fitting) - SHOWN_RUNS} more, which forge run list lists" if len(fitting) > SHOWN_RUNS else ""
    found = "no run starts" if not fitting else f"{len(fitting)} runs start ({shown}{more})"
    expected = "expected a run id, a unique beginning of one, `last`, `last-N` or a number as `r12`"
    raise RunNotFound(f"{found} with {name!r}: {expected}")


def _started_before(ledger: Ledger, name: str, before: int) -> str:
    """Return the id of the run that was started last but `before`; raise RunNotFound."""
    found = ledger.newest(RunStarted.TYPE, before=before)
    if holds(found, RunStarted):
        return found.event.run_id
    count = sum(1 for _ in ledger.rows(types=(RunStarted.TYPE,)))
    if count == 0:
        raise RunNotFound("there is no run yet", hint="forge task create --help")
    expected = f"there are {count} runs, expected `last` to `last-{count - 1}`" if count > 1 else "expected `last`"
    raise RunNotFound(f"no run {name!r}: {expected}")


def _started_as(ledger: Ledger, name: str, number: int) -> str:
    """Return the id of the run that was started as the Nth; raise RunNotFound."""
    started = list(ledger.rows(types=(RunStarted.TYPE,)))
    if number > len(started):
        raise RunNotFound(
            f"no run {name!r}: there are {len(started)} runs, expected r1 to r{len(started)}", hint="forge run list"
        )
    run_id = orjson.loads(started[number - 1].payload)["run_id"]
    assert isinstance(run_id, str)
    return run_id


def run_state(ledger: Ledger, run_id: str) -> RunState:
    """Return a run's state, from the events correlated with it and from its task, which other runs may share.

    Raises LedgerCorrupt if its first event isn't RunStarted.
    """
    started = next(ledger.read(stream=f"{STREAM}{run_id}", limit=1), None)
    if not holds(started, RunStarted):
        raise LedgerCorrupt(
            f"run {run_id!r} has events: expected RunStarted as its first", hint="forge ledger verify"
        )
    task = ledger.read(stream=f"task:{started.event.task_id}", types=(TaskCreated.TYPE,), limit=1)
    return fold(EMPTY, chain(task, ledger.read(correlation_id=run_id))).runs[run_id]


def experiments(ledger: Ledger, task_id: str) -> int:
    """Return how many runs of a task were started."""
    started = ledger.rows(types=(RunStarted.TYPE,))
    return sum(orjson.loads(row.payload)["task_id"] == task_id for row in started)
