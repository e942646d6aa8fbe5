"""Finds the folder of private keys, and the checkpoints beside a ledger."""

import contextlib
import os
from pathlib import Path

from forge.app.user_paths import read_regular, resolved
from forge.errors import UsageError
from forge.ledger.audit.report import KeptCheckpoint
from forge.ledger.signatures.checkpoints import CHECKPOINT_FILE

KEYS_FOLDER = "keys"
"""Folder of private keys in a workspace."""
KEYS_VARIABLE = "FORGE_KEYS"
"""Environment variable that names a folder outside the workspaces, which several workspaces of one user share."""
NOTE_LIMIT_BYTES = 1 << 20
"""Largest checkpoint file that is read, in bytes."""


def keys_folder(home: Path) -> Path:
    """Return the folder of private keys: the one in FORGE_KEYS, or `keys/` in the workspace."""
    named = os.environ.get(KEYS_VARIABLE)
    if not named:
        return home / KEYS_FOLDER
    folder = resolved(Path(named))
    if not folder.is_dir() and (folder.exists() or not folder.parent.is_dir()):
        raise UsageError(
            f"{KEYS_VARIABLE} is {named!r}: expected a folder, or a new name in a folder that exists; correct it"
        )
    return folder


def kept_beside(home: Path, registry: Path) -> tuple[KeptCheckpoint, ...]:
    """Return the published checkpoint and what the keys signed last, as far as this user can read them."""
    keys = keys_folder(home)
    found = [_kept(registry / CHECKPOINT_FILE, f"{registry.name}/{CHECKPOINT_FILE}", of_this=True)]
    with contextlib.suppress(OSError):  # the folder may be another user's
        notes = sorted(keys.glob("*.checkpoint"))
        found += [_kept(path, f"{keys.name}/{path.name}", of_this=False) for path in notes]
    return tuple(one for one in found if one is not None)


def _kept(path: Path, where: str, *, of_this: bool) -> KeptCheckpoint | None:
    try:
        return KeptCheckpoint(where, read_regular(path, limit_bytes=NOTE_LIMIT_BYTES), of_this)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except (OSError, ValueError) as error:
        return KeptCheckpoint(where, f"unreadable: {error}".encode(), of_this)
