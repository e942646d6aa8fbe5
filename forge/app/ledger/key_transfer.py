"""Exports the signing key of a workspace to another machine, and imports it."""

from pathlib import Path

from forge.app.ledger.signing_key import shown_key
from forge.app.plain_events import OfWorkspace
from forge.app.user.user_paths import read_regular, resolved
from forge.app.workspace import Workspace
from forge.errors import UsageError
from forge.ledger.durable import write_durably
from forge.ledger.signatures.handover import hand_over, take_over
from forge.ledger.signatures.keyring import PRIVATE

Data = dict[str, object]
FILE_LIMIT_BYTES = 1 << 20
"""Largest key file that is read, in bytes. Chosen; the limit keeps a wrong file out of memory."""


def export(workspace: Workspace, target: Path, passphrase: str, *, keep: bool) -> Data:
    """Write the key in force to a new file, and take it out of use here unless `keep`.

    Raises UsageError if the file exists or its folder doesn't.
    """
    path = resolved(target)
    if path.exists() or not path.parent.is_dir():
        raise UsageError(f"can't write {str(target)!r}: expected a new name in a folder that exists")
    key = hand_over(
        workspace.ledger,
        workspace.keyring,
        passphrase,
        write=lambda content: write_durably(path, content, mode=PRIVATE),
        keep=keep,
    )
    return {"key": key.verifier, "file": str(target), "signs_here": keep}


def take_in(workspace: Workspace, source: Path, passphrase: str) -> Data:
    """Read a key from a file, and sign with it from now on."""
    content = read_key_file(source)
    last = take_over(workspace.ledger, workspace.keyring, content, passphrase)
    workspace.sign_decisions()
    workspace.publish()
    return shown_key(OfWorkspace(workspace)) | {"signed_before": last.size if last else None}


def read_key_file(source: Path) -> bytes:
    """Return the bytes of a small file that the caller names; raise UsageError."""
    try:
        return read_regular(source, limit_bytes=FILE_LIMIT_BYTES)
    except (OSError, ValueError) as error:
        raise UsageError(f"can't read {str(source)!r}: {error}; name a file that can be read") from error


def passphrase_in(source: Path) -> str:
    """Return the first line of a file; raise UsageError."""
    try:
        return read_key_file(source).decode().split("\n", 1)[0].rstrip("\r")
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(source)!r} isn't UTF-8 text: expected a passphrase on its first line") from error
