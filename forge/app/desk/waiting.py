"""Bounds how many runs of one author wait for workers, so that it can't keep the runs of others from their turn."""

from forge.app.tokens import Caller
from forge.app.workspace import Workspace
from forge.errors import RequestRefused
from forge.projections.run_lookup import run_state

MOST_WAITING = 64
"""Largest number of runs of one author that wait for workers. Chosen; workers take the oldest first, and a decision
takes a minute, so another author waits an hour at most."""
OWN_OPEN = """
    SELECT runs.run_id FROM candidates JOIN runs USING (run_id)
    WHERE candidates.actor = ? AND runs.state IN ('candidate_ready', 'verified', 'benchmarked')
"""


def require_room(workspace: Workspace, caller: Caller) -> None:
    """Raise RequestRefused if an author has as many runs that wait as it may; an operator may have any number."""
    if caller.scope != "author":
        return
    with workspace.publication.tables() as history:
        names = [str(name) for (name,) in history.execute(OWN_OPEN, (caller.actor,))]
    if len(names) < MOST_WAITING:
        return
    waiting = sum(run_state(workspace.ledger, name).request is not None for name in names)
    if waiting >= MOST_WAITING:
        raise RequestRefused(
            f"{waiting} runs of {caller.actor!r} wait for workers: expected fewer than {MOST_WAITING} before another "
            "is asked for; wait until some are decided, or withdraw some",
            status=429,
        )
