"""What callers may change: submit candidates, ask for work, and withdraw what they asked for."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from forge.app.access.tokens import Caller
from forge.app.desk.handed_in_bytes import require_disk
from forge.app.desk.limits import FILE_LIMIT_BYTES, LONGEST_KEY
from forge.app.desk.permits import require_own, require_writer
from forge.app.ledger.recovery import recover
from forge.app.phases.phase_answer import phase_answer
from forge.app.runs.states import abort, finish_phase
from forge.app.tasks.create import open_run
from forge.app.tasks.known_tasks import find_task
from forge.app.work.requests import LastPhase, request_work, withdraw_work
from forge.app.workspace import Workspace
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import sha256
from forge.errors import IdempotencyConflict, NotFound, PhaseOutOfOrder, RequestRefused, UsageError
from forge.events import Event, RunStarted
from forge.projections.run_lookup import run_state

Data = dict[str, object]
SERVER = "system:serve"
"""Actor that opens a run for a candidate that was submitted over HTTP or MCP."""
MOST_WAITING = 64
"""Largest number of runs of one author that wait for workers. Chosen; workers take the oldest first, and a decision
takes a minute, so another author waits an hour at most."""
OWN_OPEN = """
    SELECT runs.run_id FROM candidates JOIN runs USING (run_id)
    WHERE candidates.actor = ? AND runs.state IN ('candidate_ready', 'verified', 'benchmarked')
"""


@contextmanager
def opened(home: Path, caller: Caller) -> Iterator[Workspace]:
    """Yield a workspace whose events are the caller's; repair first what a killed process left half done."""
    require_writer(caller)
    with Workspace.open(home, acts_as=caller.actor) as workspace:
        if workspace.presence is not None and workspace.presence.after_a_crash:
            recover(workspace)
        yield workspace


def submit(
    workspace: Workspace,
    caller: Caller,
    *,
    task: str,
    untrusted_files: Mapping[str, str],
    until: LastPhase | None,
    key: str | None,
) -> Data:
    """Submit a candidate, in a run of its own, and ask for its phases up to `until`; raise NotFound without its task.

    With a `key`, a repeated call gives the same run; raises IdempotencyConflict if it has another candidate.
    """
    _require_files(untrusted_files)
    created = find_task(workspace, task)
    if created.task_id != task:
        raise NotFound(f"no task {task[:200]!r}: expected the whole id of one", hint="forge task list")
    is_new = key is None or workspace.ledger.place_of(_command(caller, key)) is None
    if is_new:
        require_disk(workspace, caller, untrusted_files)
    if is_new and until is not None:
        _require_room(workspace, caller)
    run_id = _run_for(workspace, caller, task, key)
    event = _handed_in(workspace, caller, run_id, untrusted_files, key)
    run = workspace.find_run(run_id)
    if run.submitted is None and run.state != "aborted":
        abort(_as_server(workspace), run, "its candidate was refused at submission")
    if run.submitted is not None and until is not None and run.state == "candidate_ready":
        request_work(workspace, run, until)
    answer = phase_answer(event, workspace=workspace)
    return {
        "run_id": run_id,
        "task_id": task,
        "candidate": answer["candidate"],
        "verdict": answer["verdict"],
        "reason": answer["reason"],
        "state": workspace.find_run(run_id).state,
        "until": until if run.submitted is not None else None,
    }


def _handed_in(
    workspace: Workspace, caller: Caller, run_id: str, untrusted_files: Mapping[str, str], key: str | None
) -> Event:
    """Hand the files in and return the event that answers; the recorded one, if that was done before."""
    from forge.app.phases import phases  # here: the lab takes longer to import than a server may take to start

    run = workspace.find_run(run_id)
    if run.submitted is None and run.rejection is not None:
        return run.rejection.event
    with tempfile.TemporaryDirectory(prefix="forge-handed-in-") as folder:
        for name, text in untrusted_files.items():
            (Path(folder) / name).write_bytes(text.encode(errors="surrogatepass"))
        try:
            return phases.submit_candidate(workspace, run, Path(folder), author=caller.actor)
        except PhaseOutOfOrder as error:
            raise _used(run_id, key) from error


def ask_for_work(workspace: Workspace, caller: Caller, name: str, until: LastPhase) -> Data:
    """Ask that a run's phases are run up to `until`."""
    run = workspace.find_run(name)
    require_own(caller, run)
    if run.request is None:
        _require_room(workspace, caller)
    run = finish_phase(_as_server(workspace), run)
    recorded = request_work(workspace, run, until)
    return {"run_id": run.run_id, "until": until, "seq": recorded.seq, "requested_by": recorded.actor}


def withdraw(workspace: Workspace, caller: Caller, name: str, reason: str) -> Data:
    """Withdraw the request for a run's work."""
    run = workspace.find_run(name)
    require_own(caller, run)
    withdraw_work(workspace, run, reason)
    return {"run_id": run.run_id, "withdrawn": True, "reason": reason}


def _as_server(workspace: Workspace) -> Workspace:
    """Return the workspace with the server as actor, since the server ends a run whose candidate was refused."""
    return replace(workspace, acts_as=SERVER)


def _run_for(workspace: Workspace, caller: Caller, task: str, key: str | None) -> str:
    """Return the run that an earlier call with the same key opened; open one if there is none."""
    if key is not None and not (1 <= len(key) <= LONGEST_KEY and key.isprintable()):
        raise UsageError(
            f"bad idempotency key {key[:LONGEST_KEY]!r}: expected 1 to {LONGEST_KEY} printable characters"
        )
    command = None if key is None else _command(caller, key)
    place = None if command is None else workspace.ledger.place_of(command)
    if place is None:
        opened_run = open_run(workspace, task, command="submission", key=command, actor=SERVER)
        return opened_run.run_id
    started = next(workspace.ledger.read(after_seq=place - 1, limit=1)).event
    assert isinstance(started, RunStarted)
    if started.task_id != task:
        raise _used(started.run_id, key)
    return started.run_id


def _command(caller: Caller, key: str) -> str:
    """Return the ledger's key of a submission with a caller's own key."""
    return f"handed-in:{sha256(f'{caller.actor} {key}'.encode(errors='surrogatepass'))}"


def _used(run_id: str, key: str | None) -> IdempotencyConflict:
    return IdempotencyConflict(
        f"the key {key!r} was used before, with other content, for run {run_id!r}: expected another key",
        hint=f"forge run show {run_id}",
    )


def _require_files(untrusted_files: Mapping[str, str]) -> None:
    """Raise UsageError or RequestRefused unless these are exactly a candidate's five files, within their limit."""
    expected = f"expected exactly {', '.join(REQUIRED_FILES)}"
    for name in untrusted_files:
        if name not in REQUIRED_FILES:
            raise UsageError(f"file {name[:100]!r}: unexpected; {expected}")
    missing = [name for name in REQUIRED_FILES if name not in untrusted_files]
    if missing:
        raise UsageError(f"no {', '.join(missing)}: {expected}")
    for name, text in untrusted_files.items():
        size = len(text.encode(errors="surrogatepass"))
        if size > FILE_LIMIT_BYTES:
            raise RequestRefused(f"{name} has {size} bytes: expected at most {FILE_LIMIT_BYTES}", status=413)


def _require_room(workspace: Workspace, caller: Caller) -> None:
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
