"""Reads the input of a check: files, and a key given as text or in a file."""

import os
import stat
from pathlib import Path

from forge.errors import UsageError
from forge.proof.check import Checked, check_proof
from forge.proof.note import KEY_FORM, VerifierKey, parse_key

FILE_LIMIT_BYTES = 1 << 30
"""Largest size of an input file, 1 GiB: it is read into memory."""


def check_files(proof: Path, artifact: Path, key: str, *, kernel_id: str | None) -> Checked:
    """Read the files and check the proof; `key` is a verifier key or the path of a file with one."""
    untrusted, content = read(proof), read(artifact)
    return check_proof(untrusted, content, key_of(key), kernel_id=kernel_id)


def key_of(named: str) -> VerifierKey:
    """Return the verifier key, given as text or as the path of a file; raise UsageError if it is neither."""
    if "+" in named and "\n" not in named and not Path(named).is_file():
        return parse_key(named)
    try:
        return parse_key(read(Path(named)).decode())
    except UnicodeDecodeError as error:
        raise UsageError(f"{named!r} holds no verifier key: it isn't text; expected {KEY_FORM}") from error


def read(path: Path) -> bytes:
    """Return a file's bytes; raise UsageError if it isn't a regular file or is too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > FILE_LIMIT_BYTES:
            os.close(descriptor)
            raise ValueError(f"it isn't a regular file of at most {FILE_LIMIT_BYTES} bytes")
        with open(descriptor, "rb") as file:
            return file.read(FILE_LIMIT_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"can't read {str(path)!r} ({why}): expected a file that you may read") from error
