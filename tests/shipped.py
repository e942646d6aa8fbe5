"""Copies the ledger that ships, for tests that change or read a workspace of their own."""

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).parent.parent


def copy_shipped_ledger(folder: Path) -> Path:
    """Copy the ledger into a folder and return the folder; evidence is only read, so that a link to it is enough."""
    shutil.copy(ROOT / "kernel_registry.db", folder)
    shutil.copytree(ROOT / "forge_runs", folder / "forge_runs", copy_function=_link_or_copy)
    return folder


def _link_or_copy(source: str, target: str) -> None:
    """Link to a file, or copy it to another disk, as where /tmp is kept in memory."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
