"""Finds the folder of private keys, and the checkpoints beside a ledger."""

import contextlib
from pathlib import Path

from forge.app.keys_place import keys_folder
from forge.app.user_paths import read_regular
from forge.ledger.audit.report import KeptCheckpoint
from forge.ledger.signatures.checkpoints import CHECKPOINT_FILE

NOTE_LIMIT_BYTES = 1 << 20
"""Largest checkpoint file that is read, in bytes. Chosen; the limit keeps a wrong file out of memory."""


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
