"""Writes rendered files to the published folder: whole, durable, and the pointer last.

A reader sees each file either in its old or in its new form. A snapshot is on disk before the pointer names it. After
a crash or on a full disk, the pointer names what it named before.
"""

import contextlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import orjson

from forge.errors import BlobCorrupt, UsageError
from forge.ledger.durable import fsync_all, make_folder
from forge.lookup.published import read_published
from forge.projections.snapshot import POINTER
from forge.projections.sqlite_file import ASIDE

SNAPSHOTS = "lookup-*.json"
"""Pattern of the names of snapshots."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def put(directory: Path, files: Mapping[str, bytes], *, keep: int = 5) -> None:
    """Write `files` (name relative to `directory` -> content), the pointer last; keep the `keep` newest snapshots.

    Raises UsageError for a name that leaves the directory, OSError if the disk refuses.
    """
    for name in files:
        _check_name(name)
    make_folder(directory)
    _replace(directory, {name: content for name, content in files.items() if name != POINTER})
    _replace(directory, {name: content for name, content in files.items() if name == POINTER})
    _prune(directory, keep=keep)


def _check_name(name: str) -> None:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or path.name.startswith(ASIDE):
        raise UsageError(f"bad name {name!r} to publish: expected a path inside the directory")


def _replace(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write every file aside, then rename them all; if one can't be written, none is left aside."""
    written: list[tuple[Path, str]] = []
    try:
        for name, content in files.items():
            if content_of(directory, name) != content:
                written.append((_write_aside(directory, content, mode=_mode(name)), name))
            elif PurePosixPath(name).match(SNAPSHOTS):
                os.utime(directory / name)  # it is the newest generation again
        fsync_all((aside for aside, _ in written), ())
        for aside, name in written:
            _rename(directory, aside.name, PurePosixPath(name).parts)
    finally:
        for aside, _ in written:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside)
    targets = [directory / name for _, name in written]
    fsync_all((), {folder for target in targets for folder in target.parents if folder.is_relative_to(directory)})


def _rename(directory: Path, aside: str, parts: tuple[str, ...]) -> None:
    """Rename a file in the directory to a path below it. A link on the way is replaced by a folder, not followed."""
    root = os.open(directory, _FOLDER)
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            inner = _opened_folder(folder, part)
            os.close(folder)
            folder = inner
        os.replace(aside, parts[-1], src_dir_fd=root, dst_dir_fd=folder)
    finally:
        os.close(folder)
        os.close(root)


def _opened_folder(folder: int, name: str) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=folder)
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)


def content_of(directory: Path, name: str) -> bytes | None:
    """Return a published file's bytes; None if it can't be read, or is behind a link, or no regular file."""
    try:
        return read_published(str(directory), name)
    except BlobCorrupt:
        return None


def _mode(name: str) -> int:
    """Return a file's mode: read-only for a snapshot, because its name depends on its content."""
    return 0o444 if PurePosixPath(name).match(SNAPSHOTS) else 0o644


def _write_aside(directory: Path, content: bytes, *, mode: int) -> Path:
    descriptor, aside = tempfile.mkstemp(prefix=ASIDE, dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
    except BaseException:
        os.unlink(aside)
        raise
    return Path(aside)


def _prune(directory: Path, *, keep: int) -> None:
    """Remove all but the `keep` newest snapshots; the one that the pointer names always stays."""
    try:
        named = orjson.loads(content_of(directory, POINTER) or b"")["snapshot"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return
    snapshots = sorted(directory.glob(SNAPSHOTS), key=lambda path: (path.lstat().st_mtime_ns, path.name))
    for snapshot in snapshots[: max(0, len(snapshots) - keep)]:
        if snapshot.name != named:
            snapshot.unlink()
