"""Writes rendered files to the published folder: whole, durable, and the pointer last.

A reader sees each file either in its old or in its new form. A snapshot is on disk before the pointer names it. After
a crash or on a full disk, the pointer names what it named before.
"""

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import orjson

from forge.errors import UsageError
from forge.ledger.durable import fsync_all, make_folder
from forge.projections.catch_up import ASIDE
from forge.projections.snapshot import POINTER

SNAPSHOTS = "lookup-*.json"
"""Pattern of the names of snapshots."""


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
    written: list[tuple[Path, Path]] = []
    try:
        for name, content in files.items():
            target = directory / name
            if not holds(target, content):
                written.append((_write_aside(directory, content, mode=_mode(name)), target))
            elif PurePosixPath(name).match(SNAPSHOTS):
                os.utime(target)  # it is the newest generation again
        fsync_all((aside for aside, _ in written), ())
        for aside, target in written:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(aside, target)
    finally:
        for aside, _ in written:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside)
    fsync_all((), {folder for _, target in written for folder in target.parents if folder.is_relative_to(directory)})


def holds(target: Path, content: bytes) -> bool:
    """Return whether the file exists with this content."""
    try:
        return target.read_bytes() == content
    except FileNotFoundError:
        return False


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
        named = orjson.loads((directory / POINTER).read_bytes())["snapshot"]
    except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError):
        return
    snapshots = sorted(directory.glob(SNAPSHOTS), key=lambda path: (path.stat().st_mtime_ns, path.name))
    for snapshot in snapshots[: max(0, len(snapshots) - keep)]:
        if snapshot.name != named:
            snapshot.unlink()
