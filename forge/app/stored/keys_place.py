"""Says where a workspace's private keys are; imports little, so that lists stay quick."""

import os
from pathlib import Path

from forge.app.user.user_paths import resolved
from forge.errors import UsageError

KEYS_FOLDER = "keys"
"""Folder of private keys in a workspace."""
KEYS_VARIABLE = "FORGE_KEYS"
"""Environment variable that names a folder outside the workspaces, which several workspaces of one user share."""


def keys_folder(home: Path) -> Path:
    """Return the folder of private keys: the one in FORGE_KEYS, or `keys/` in the workspace.

    Raises UsageError if FORGE_KEYS names a file, or a folder in none that exists.
    """
    named = os.environ.get(KEYS_VARIABLE)
    if not named:
        return home / KEYS_FOLDER
    folder = resolved(Path(named))
    if not folder.is_dir() and (folder.exists() or not folder.parent.is_dir()):
        raise UsageError(
            f"{KEYS_VARIABLE} is {named!r}: expected a folder, or a new name in a folder that exists; correct it"
        )
    return folder
