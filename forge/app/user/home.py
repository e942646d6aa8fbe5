"""Finds the workspace that is meant; imports little, so that a lookup stays quick."""

import os
from pathlib import Path

from forge.app.user.user_paths import resolved
from forge.errors import WorkspaceNotFound

LEDGER_FILE = "kernel_registry.db"
RUNS_FOLDER = "forge_runs"
REGISTRY_FOLDER = "kernel_registry"
HOME_VARIABLE = "FORGE_HOME"
"""Environment variable that names the workspace."""
TOKEN_VARIABLE = "FORGE_TOKEN"  # noqa: S105 (a name, not a token)
"""Environment variable with the token of a program that is started as a child process."""


def find_home(named: Path | None) -> Path:
    """Return the workspace that is meant: named, in FORGE_HOME, or the nearest parent with a ledger.

    Raises WorkspaceNotFound if there is none.
    """
    chosen = named or (Path(os.environ[HOME_VARIABLE]) if os.environ.get(HOME_VARIABLE) else None)
    if chosen is not None:
        return resolved(chosen)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / LEDGER_FILE).exists():
            return folder
    raise WorkspaceNotFound(f"no {LEDGER_FILE} in {str(here)!r} or above it: expected a workspace", hint="forge init")
