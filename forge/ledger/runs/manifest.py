"""Lists what a sealed run directory contains: each regular file by path, size, digest and role.

Permission bits don't stop a process that runs as root. The protection is the manifest, whose digest is in the ledger.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from forge.domain.content import canonical_document
from forge.errors import IntegrityError
from forge.ledger.blobs import DIGEST

FORMAT = "forge.run.v1"
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


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One file of a run."""

    path: str
    """Relative to the run directory, with `/`."""
    size_bytes: int
    sha256: str
    role: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a run without the manifest, in the order of their paths' bytes."""

    run_id: str
    files: tuple[ManifestFile, ...]

    def content(self) -> bytes:
        """Return the manifest's bytes, as they are stored."""
        return canonical_document({"format": FORMAT, **asdict(self)})


def parse_manifest(untrusted_content: bytes) -> Manifest:
    """Return the manifest with exactly these bytes; raise ValueError for any others."""
    try:
        document = orjson.loads(untrusted_content)
        files = tuple(ManifestFile(**one) for one in document["files"])
        found = Manifest(document["run_id"], files)
        sound = isinstance(found.run_id, str) and all(map(_is_sound, files)) and found.content() == untrusted_content
    except (KeyError, TypeError) as error:
        raise ValueError(f"expected a manifest of the format {FORMAT} ({error})") from error
    if not sound:
        raise ValueError(f"expected the canonical bytes of a manifest of the format {FORMAT}")
    return found


def _is_sound(file: ManifestFile) -> bool:
    """Return whether all fields have their types, the digest its form, and the size isn't below zero."""
    texts = (file.path, file.sha256, file.role)
    sized = type(file.size_bytes) is int and file.size_bytes >= 0
    return sized and all(isinstance(text, str) for text in texts) and DIGEST.fullmatch(file.sha256) is not None


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


@dataclass(frozen=True, slots=True)
class NotRegular:
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
