"""Lets workers judge a session's candidates: hands a draft in, asks for work, and waits for the answer."""

import time
from collections.abc import Callable

from forge.app.runs.states import ENDS, abort, finish_phase
from forge.app.sessions.judging import Judging, hand_in, judging_of, next_phase
from forge.app.work.ends_closed_runs import POLL_S
from forge.app.work.requests import request_work, withdraw_work
from forge.app.workspace import Workspace
from forge.domain.authoring import OVERTAKEN, Draft
from forge.lab.job import Progress
from forge.ledger.runs.taken import is_taken, taken
from forge.ledger.watch import LedgerWatch

NOT_WANTED = "its session was closed"
"""Reason recorded for a request that is withdrawn with its session."""


def hand_over(workspace: Workspace, run_id: str, draft: Draft, *, author: str) -> bool:
    """Submit a draft in its run, if it wasn't, and ask workers for its next phases; return False if none is left."""
    with taken(workspace.directory(run_id)) as is_ours:
        if not is_ours:  # a worker has it
            return True
        hand_in(workspace, run_id, draft, author=author)
        run = finish_phase(workspace, workspace.find_run(run_id))
        if next_phase(run) is None:
            return False
        request_work(workspace, run, "promote")
        return True


def judge_by_workers(
    workspace: Workspace,
    run_id: str,
    draft: Draft,
    *,
    author: str,
    progress: Progress,
    repeats: int,
    patience_s: float,
    unwanted: Callable[[], str],
    overtaken: Callable[[], bool] = lambda: False,
) -> Judging:
    """Have workers take a draft through the phases, and return what came of it.

    There is no verdict if no worker takes the run within `patience_s` seconds, or if `unwanted` gives a reason before
    one does. `overtaken` is asked after each event; once it is true, the run is closed, which ends its worker's
    guests. What ends without a decision is asked for again, at most `repeats` times.
    """
    device_ns, unfit = 0, ""
    for _ in range(1 + repeats):
        if not unfit and overtaken():
            unfit = give_up(workspace, run_id)
        if unfit or not hand_over(workspace, run_id, draft, author=author):
            break
        progress("waiting for a worker")
        spent_ns, unfit = _answered(workspace, run_id, patience_s, unwanted, overtaken)
        device_ns += spent_ns
    while True:
        with taken(workspace.directory(run_id)) as is_ours:
            if is_ours:
                return judging_of(workspace, run_id, draft, device_ns=device_ns, unfit=unfit)
        time.sleep(POLL_S)  # a worker that comes too late takes the run for a moment


def _answered(
    workspace: Workspace,
    run_id: str,
    patience_s: float,
    unwanted: Callable[[], str],
    overtaken: Callable[[], bool],
) -> tuple[int, str]:
    """Wait until a request is answered and its worker has left the run.

    Return the nanoseconds for which a worker had the run, and why there was no answer.
    """
    watch, device_ns, looked_ns = LedgerWatch(workspace.ledger.path), 0, time.monotonic_ns()
    idle_ns, stands, given_up = looked_ns, True, ""
    try:
        while True:
            time.sleep(POLL_S)
            before_ns, looked_ns = looked_ns, time.monotonic_ns()
            if watch.changed() and not given_up:
                given_up = give_up(workspace, run_id) if overtaken() else ""
                stands = workspace.find_run(run_id).request is not None
            if is_taken(workspace.directory(run_id)):
                device_ns, idle_ns = device_ns + looked_ns - before_ns, looked_ns
            elif not stands:
                return device_ns, given_up
            elif why := unwanted():
                return device_ns, _withdrawn(workspace, run_id, why)
            elif looked_ns - idle_ns > patience_s * 1e9:
                why = f"no worker took it within {patience_s:g} s: start one with forge work"
                return device_ns, _withdrawn(workspace, run_id, why)
    finally:
        watch.close()


def withdraw_open(workspace: Workspace, run_id: str) -> None:
    """Withdraw a run's request if it stands: the session that asked for it is closed."""
    if workspace.find_run(run_id).request is not None:
        _withdrawn(workspace, run_id, NOT_WANTED)


def give_up(workspace: Workspace, run_id: str) -> str:
    """Close a run that isn't verified, since another candidate was right first; return that reason.

    A worker that judges it sees that, and ends its guests. A run that is decided meanwhile keeps its verdict.
    """
    run = workspace.find_run(run_id)
    if run.verified is None and not run.sealed and run.state not in (*ENDS, "aborted"):
        abort(workspace, run, OVERTAKEN)
    return OVERTAKEN


def _withdrawn(workspace: Workspace, run_id: str, why: str) -> str:
    run = workspace.find_run(run_id)
    if run.request is not None:
        withdraw_work(workspace, run, why)
    return why
