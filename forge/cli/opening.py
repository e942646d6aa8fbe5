"""Opens a command's workspace. It imports the application late, so that help stays quick."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from forge.cli.output import say

if TYPE_CHECKING:
    from forge.app.at_head import AtHead
    from forge.app.ledger.recovery import Recovery
    from forge.app.plain_events import HasEvents
    from forge.app.stored.run_documents import RunDocuments
    from forge.app.workspace import Workspace

Found = TypeVar("Found")


def open_workspace(home: Path | None) -> "Workspace":
    """Open the workspace of --home, FORGE_HOME or the current folder.

    If another process was killed in it, and no other process is in it now, repair what that process left half done.
    """
    from forge.app.ledger.recovery import recover
    from forge.app.user.home import find_home
    from forge.app.workspace import Workspace

    workspace = Workspace.open(find_home(home))
    try:
        if workspace.presence is not None and workspace.presence.after_a_crash:
            for line in told(recover(workspace)):
                say(f"recovered: {line}")
    except BaseException as error:
        workspace.__exit__(type(error))
        raise
    return workspace


def ask_events(home: Path | None, ask: "Callable[[HasEvents], Found]") -> Found:
    """Return what `ask` finds in the tables and the ledger's events.

    If the tables stand at the ledger's head, events are read as plain JSON, and no pydantic model is loaded.
    Otherwise the workspace is opened whole.
    """
    found = ask_at_head(home, ask)
    if found is not None:
        return found
    from forge.app.plain_events import OfWorkspace

    with open_workspace(home) as workspace:
        return ask(OfWorkspace(workspace))


def ask_run(home: Path | None, name: str, ask: "Callable[[HasEvents, RunDocuments], Found]") -> Found:
    """Return what `ask` finds about the run called `name`, after its last phase has been finished.

    If nothing is left to finish and the tables stand at the ledger's head, no pydantic model is loaded. Otherwise the
    workspace is opened whole, and what a killed process left of the phase is finished first.
    """
    found = ask_at_head(home, lambda opened: ask(opened, opened.run_documents(name)))
    if found is not None:
        return found
    from forge.app.plain_events import OfWorkspace
    from forge.app.runs.states import finish_phase
    from forge.app.stored.run_documents import of_state

    with open_workspace(home) as workspace:
        return ask(OfWorkspace(workspace), of_state(finish_phase(workspace, workspace.find_run(name))))


def ask_at_head(home: Path | None, ask: "Callable[[AtHead], Found]") -> Found | None:
    """Ask a workspace whose tables stand at the ledger's head; return None if it must be opened whole."""
    from forge.app.at_head import at_head
    from forge.app.user.home import find_home

    with at_head(find_home(home)) as found:
        try:
            return None if found is None else ask(found)
        except KeyError:  # an event that models must read, or an older one without a field
            return None


def told(recovery: "Recovery", *, dry_run: bool = False) -> list[str]:
    """Return one line for each thing that was repaired, or would be."""
    remove, seal, close = ("remove", "seal", "close") if dry_run else ("removed", "sealed", "closed")
    lines = [f"{remove} {name}, which was half written" for name in recovery.swept]
    lines += [f"{seal} run {run_id}, which had ended" for run_id in recovery.sealed]
    lines += [f"{close} run {run_id}" for run_id in recovery.aborted]
    return lines + (["updated the published files from the ledger"] if recovery.published else [])
