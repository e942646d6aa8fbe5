"""Opens a command's workspace. It imports the application late, so that help stays quick."""

from pathlib import Path
from typing import TYPE_CHECKING

from forge.cli.output import say

if TYPE_CHECKING:
    from forge.app.recovery import Recovery
    from forge.app.workspace import Workspace


def open_workspace(home: Path | None) -> "Workspace":
    """Open the workspace of --home, FORGE_HOME or the current folder.

    If another process was killed in it, and no other process is in it now, repair what that process left half done.
    """
    from forge.app.home import find_home
    from forge.app.recovery import recover
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


def told(recovery: "Recovery", *, dry_run: bool = False) -> list[str]:
    """Return one line for each thing that was repaired, or would be."""
    remove, seal, close = ("remove", "seal", "close") if dry_run else ("removed", "sealed", "closed")
    lines = [f"{remove} {name}, which was half written" for name in recovery.swept]
    lines += [f"{seal} run {run_id}, which had ended" for run_id in recovery.sealed]
    lines += [f"{close} run {run_id}" for run_id in recovery.aborted]
    return lines + (["updated the published files from the ledger"] if recovery.published else [])
