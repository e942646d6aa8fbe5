"""Chooses the executor of a command: the machine that is named, or this one with the chosen GPU if there is one."""

import os
import tempfile
from pathlib import Path

from forge.app.machine.chosen_device import chosen_device
from forge.app.machine.chosen_place import chosen_place
from forge.app.workspace import Workspace
from forge.executor import Executor
from forge.executor.local import LocalExecutor

COMMIT_VARIABLE = "FORGE_COMMIT"
"""Environment variable with the commit of Forge that runs; a machine's description names it."""


def executor_of(workspace: Workspace) -> Executor:
    """Return the executor that runs this command's jobs."""
    return chosen_place() or executor_here(workspace.runs_root / "measuring.lock")


def executor_here(lock: Path | None = None) -> Executor:
    """Return the executor of this machine. Measurements on its processor take turns by a workspace's `lock`."""
    lock = lock or Path(tempfile.gettempdir()) / "forge-measuring.lock"
    return LocalExecutor(lock, device=chosen_device(), forge_commit=os.environ.get(COMMIT_VARIABLE))
