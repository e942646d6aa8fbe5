"""How a command gets at its workspace: opened late, so that help stays quick."""

from pathlib import Path
from typing import TYPE_CHECKING

from forge.cli.output import say

if TYPE_CHECKING:
    from forge.app.recovery import Recovery
    from forge.app.workspace import Workspace


def open_workspace(home: Path | None) -> "Workspace":
    """Open the workspace that is meant by --home, FORGE_HOME or the current folder.

    If somebody was killed in it, and nobody else is there now, what is half done is put right first.
    """
    from forge.app.recovery import recover
    from forge.app.workspace import Workspace, find_home

    workspace = Workspace.open(find_home(home))
    try:
        if workspace.presence is not None and workspace.presence.after_a_crash:
            for line in told(recover(workspace)):
                say(f"recovered: {line}")
    except BaseException as error:
        workspace.__exit__(type(error))
        raise
    return workspace


def told(recovery: "Recovery") -> list[str]:
    """What was put right, a line for each."""
    lines = [f"removed {name}, which was half written" for name in recovery.swept]
    lines += [f"sealed run {run_id}, which had come to its end" for run_id in recovery.sealed]
    lines += [f"closed run {run_id}" for run_id in recovery.aborted]
    return lines + (["published what the ledger was ahead of"] if recovery.published else [])
