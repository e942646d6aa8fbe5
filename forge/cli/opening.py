"""How a command gets at its workspace: opened late, so that help stays quick."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge.app.workspace import Workspace


def open_workspace(home: Path | None) -> "Workspace":
    """Open the workspace that is meant by --home, FORGE_HOME or the current folder."""
    from forge.app.workspace import Workspace, find_home

    return Workspace.open(find_home(home))
