"""Repairs a workspace after a process was killed: automatically if that is safe, otherwise by `forge ledger recover`.

An open run isn't an orphan: each phase is a separate command, and a run may wait for the next one for any time. An
orphan is a run that can't continue because its folder is gone.
"""

from dataclasses import dataclass

from forge.app.runs.states import ENDS, finish_phase
from forge.app.workspace import Workspace
from forge.errors import StorageFailed
from forge.events import RunAborted, RunSealed, RunStarted
from forge.ledger.runs.cleanup import sweep, unknown_runs
from forge.ledger.runs.directory import RunDirectory
from forge.projections.run_lookup import run_state
from forge.projections.runs import RunState

RECOVERY = "system:recovery"
"""Actor of the events that recovery records."""
FOLDER_GONE = "its folder is gone: the process that worked on it was killed, or it was removed"
"""Reason recorded for a run whose folder is gone."""
CLOSED_BY_RECOVERY = "no process works on it: closed by forge ledger recover"
"""Reason recorded for an open run that the user asked to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What recovery found and repaired."""

    alone: bool
    """True if no other process was at work. Otherwise nothing was changed."""
    after_a_crash: bool
    """True if a process was killed since the last recovery."""
    swept: tuple[str, ...] = ()
    """Unfinished files that were removed."""
    sealed: tuple[str, ...] = ()
    """Runs that had ended and were sealed now."""
    aborted: tuple[str, ...] = ()
    """Runs that were aborted now."""
    unknown: tuple[str, ...] = ()
    """Runs on disk that the ledger doesn't know; they are kept."""
    published: bool = False
    """True if the published registry was behind the ledger."""


def recover(workspace: Workspace, *, abort_open: bool = False, dry_run: bool = False) -> Recovery:
    """Repair what killed processes left; a second or concurrent call changes nothing more.

    `abort_open` also closes every open run. A dry run only publishes, as every command does. Raises
    StorageFailed if the workspace was opened for reading.
    """
    presence = workspace.presence
    if presence is None:
        raise StorageFailed(
            f"{str(workspace.home)!r} was opened for reading only: expected a folder that you may write to"
        )
    crashed = presence.after_a_crash
    with presence.alone() as alone:
        if not alone:
            return Recovery(alone=False, after_a_crash=crashed)
        published = workspace.catch_up()
        begun, ended = _begun_and_ended(workspace)
        swept = sweep(workspace.home, workspace.runs_root, known_runs=begun, only_look=dry_run)
        sealed, aborted = _close(workspace, sorted(begun - ended), abort_open=abort_open, dry_run=dry_run)
        if not dry_run:
            workspace.catch_up()
            presence.settle()
    return Recovery(
        alone=True,
        after_a_crash=crashed,
        swept=tuple(swept),
        sealed=tuple(sealed),
        aborted=tuple(aborted),
        unknown=tuple(unknown_runs(workspace.runs_root, begun)),
        published=published,
    )


def _close(
    workspace: Workspace, open_runs: list[str], *, abort_open: bool, dry_run: bool
) -> tuple[list[str], list[str]]:
    """Seal runs that ended, and abort those that can't continue, unless it is a dry run; return both."""
    sealed, aborted = [], []
    for run_id in open_runs:
        run = run_state(workspace.ledger, run_id)
        if run.state in ENDS:
            sealed.append(run_id)
            if not dry_run:
                finish_phase(workspace, run)
        elif abort_open or _is_orphan(workspace, run):
            aborted.append(run_id)
            if not dry_run:
                _abort(workspace, run_id, FOLDER_GONE if _is_orphan(workspace, run) else CLOSED_BY_RECOVERY)
        elif not dry_run:
            workspace.put_back(run)
    return sealed, aborted


def _begun_and_ended(workspace: Workspace) -> tuple[set[str], set[str]]:
    begun, ended = set(), set()
    for recorded in workspace.ledger.read(types=("RunStarted", "RunSealed", "RunAborted")):
        match recorded.event:
            case RunStarted(run_id=run_id):
                begun.add(run_id)
            case RunSealed(run_id=run_id) | RunAborted(run_id=run_id):
                ended.add(run_id)
            case _:
                raise AssertionError(f"{recorded.event.TYPE} neither begins nor ends a run")
    return begun, ended


def _is_orphan(workspace: Workspace, run: RunState) -> bool:
    """Return whether the run had files and its folder is gone."""
    had_files = run.plan is not None or run.prompt is not None or run.submitted is not None
    return had_files and not RunDirectory(workspace.runs_root, run.run_id).path.exists()


def _abort(workspace: Workspace, run_id: str, reason: str) -> None:
    event = RunAborted(run_id=run_id, reason=reason)
    workspace.append((event,), run_id=run_id, key=f"abort:{run_id}", actor=RECOVERY)
