"""Reads the five files of a folder that isn't trusted: neither its names, sizes and links nor its encodings."""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from forge.domain.candidate import FILE_LIMIT_BYTES
from forge.domain.candidate_files import REQUIRED_FILES

LEFT_OUT = ("__pycache__", "space.json")
"""Names in a folder that are no part of a candidate: what Python leaves, and a template's space for a search."""


@dataclass(frozen=True)
class BadFolder:
    """Why a folder is no candidate."""

    message: str


def read_folder(folder: Path) -> tuple[dict[str, bytes], BadFolder | None]:
    """Read the five files up to the first fault. Links aren't followed, and large files aren't read."""
    names = sorted(os.listdir(folder))
    for name in names:
        if name not in REQUIRED_FILES and name not in LEFT_OUT:
            return {}, BadFolder(f"{name!r}: unexpected; expected exactly {', '.join(REQUIRED_FILES)}")
    files: dict[str, bytes] = {}
    for name in REQUIRED_FILES:
        if name not in names:
            return files, BadFolder(f"{name}: missing; expected exactly {', '.join(REQUIRED_FILES)}")
        content = read_file(folder / name)
        if isinstance(content, BadFolder):
            return files, content
        files[name] = content
    return files, None


def read_file(path: Path) -> bytes | BadFolder:
    """Read one file of text that isn't trusted, within the limit of a candidate's files."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return BadFolder(f"{path.name}: a link; put the file itself there")
        return BadFolder(f"{path.name}: can't be read as a regular file ({error.strerror})")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return BadFolder(f"{path.name}: not a regular file")
    with open(descriptor, "rb") as file:
        content = file.read(FILE_LIMIT_BYTES + 1)
    if len(content) > FILE_LIMIT_BYTES:
        return BadFolder(f"{path.name}: more than {FILE_LIMIT_BYTES} bytes")
    if not content.strip():
        return BadFolder(f"{path.name}: empty")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return BadFolder(f"{path.name}: not UTF-8 (byte {error.start})")
    return BadFolder(f"{path.name}: contains a NUL character") if "\0" in text else content
