"""Lists what a sealed run directory contains: each regular file by path, size, digest and role.

Permission bits don't stop a process that runs as root. The protection is the manifest, whose digest is in the ledger.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Digest, Value
from forge.errors import IntegrityError

MANIFEST = "manifest.json"
"""Name of the manifest in a run's directory."""
PATH_LIMIT = 200
"""Longest path of a file of a run, in characters. Chosen; it is below the 255 bytes that file systems allow for one
name."""

_ROLES = (
    ("candidate/", "candidate"),
    ("task.json", "task"),
    ("agent_prompt", "prompt"),
    ("skill", "skills"),
    ("verification", "verification"),
    ("benchmark", "benchmark"),
    ("samples", "samples"),
    ("promotion", "promotion"),
)
"""Beginning of a path -> the file's role."""


class ManifestFile(Value):
    """One file of a run."""

    path: str
    """Relative to the run directory, with `/`."""
    size_bytes: Annotated[int, Field(ge=0)]
    sha256: Digest
    role: str


class Manifest(Value):
    """The files of a run without the manifest, in the order of their paths' bytes."""

    format: Literal["forge.run.v1"] = "forge.run.v1"
    run_id: str
    files: tuple[ManifestFile, ...]


def role_of(path: str) -> str:
    """Return what a file is for, by its name alone, so that a resumed seal gives the same manifest."""
    return next((role for start, role in _ROLES if path.startswith(start)), "attachment")


def require_inside(name: str) -> str:
    """Return a relative path that stays inside its folder; raise IntegrityError for any other."""
    parts = name.split("/")
    plain = name.isprintable() and "\\" not in name and 1 <= len(name) <= PATH_LIMIT
    if not plain or any(part in ("", ".", "..") or part.startswith(".part-") for part in parts):
        raise IntegrityError(
            f"{name!r} isn't a file name inside a run directory: expected a relative path such as candidate/kernel.py"
        )
    return name


class NotRegular(Value):
    """A link, device, pipe or socket, whose content isn't in the directory; or a name that isn't text."""

    path: str


def walk(root: Path) -> Iterator[ManifestFile | NotRegular]:
    """Yield every entry below `root` that isn't a folder, hashed; the manifest too."""
    pending = [root]
    while pending:
        folder = pending.pop()
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = Path(entry.path).relative_to(root).as_posix()
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif not _is_text(name):
                    yield NotRegular(path=os.fsencode(name).decode("utf-8", "backslashreplace"))
                elif entry.is_file(follow_symlinks=False):
                    yield _hashed(Path(entry.path), name)
                else:
                    yield NotRegular(path=name)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _hashed(path: Path, name: str) -> ManifestFile | NotRegular:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return NotRegular(path=name)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return ManifestFile(path=name, size_bytes=stream.tell(), sha256=digest, role=role_of(name))
