"""Putting rendered files where readers find them: whole, on the disk, and the pointer last.

A reader sees each file as it was or as it is, never in between; a snapshot is on the disk before the pointer
names it; after a crash or a full disk the pointer names what it named before. Publishers of one directory
take turns, and an older state never replaces a newer one of the same ledger.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import orjson

from forge.errors import StorageFailed, UsageError
from forge.projections.snapshot import POINTER

LOCK = ".publish.lock"
UNFINISHED = ".publishing-"
"""What a file is called until it is whole; leftovers of a crash are removed by the next publisher."""
SNAPSHOTS = "lookup-*.json"


def publish(directory: Path, files: Mapping[str, bytes], *, keep: int = 5, replace_newer: bool = False) -> bool:
    """Write `files` (name relative to `directory` -> content) and keep the `keep` newest snapshots.

    Returns whether the directory now shows `files`: False if it already shows a later state of the same
    ledger and `replace_newer` isn't set (as it must be after a ledger was restored from a backup). Raises
    StorageFailed if the disk refuses, UsageError for a name that leaves the directory.
    """
    for name in files:
        _check_name(name)
    others = {name: content for name, content in files.items() if name != POINTER}
    pointer = {name: content for name, content in files.items() if name == POINTER}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _alone(directory):
            if not replace_newer and _shows_newer(directory, pointer.get(POINTER)):
                return False
            for leftover in directory.glob(f"{UNFINISHED}*"):
                leftover.unlink()
            _replace(directory, others)
            _replace(directory, pointer)
            _prune(directory, keep=keep)
    except OSError as error:
        raise StorageFailed(
            f"can't publish to {str(directory)!r}: {error}; what was published before still stands"
        ) from error
    return True


def _check_name(name: str) -> None:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or path.name.startswith(UNFINISHED):
        raise UsageError(f"bad name {name!r} to publish: expected a path inside the directory")


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Hold the directory's lock; another publisher waits. A crash lets go of it."""
    lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _shows_newer(directory: Path, pointer: bytes | None) -> bool:
    """Whether the published pointer stands at a later place of the same ledger; an unreadable one doesn't."""
    if pointer is None:
        return False
    try:
        shown = orjson.loads((directory / POINTER).read_bytes())["ledger"]
        ours = orjson.loads(pointer)["ledger"]
        return bool(shown["ledger_id"] == ours["ledger_id"] and shown["seq"] > ours["seq"])
    except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError):
        return False


def _replace(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write every file aside, then rename them all; nothing is left aside if one can't be written."""
    written: list[tuple[str, Path]] = []
    try:
        for name, content in files.items():
            target = directory / name
            if not _is(target, content):
                written.append((_write_aside(directory, content, mode=_mode(name)), target))
            elif PurePosixPath(name).match(SNAPSHOTS):
                os.utime(target)  # it is the newest generation again
        for aside, target in written:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(aside, target)
    finally:
        for aside, _ in written:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside)
    for folder in {directory.parent, directory} | {target.parent for _, target in written}:
        _sync(folder)


def _is(target: Path, content: bytes) -> bool:
    try:
        return target.read_bytes() == content
    except FileNotFoundError:
        return False


def _mode(name: str) -> int:
    """A snapshot is named by its content: nobody edits it."""
    return 0o444 if PurePosixPath(name).match(SNAPSHOTS) else 0o644


def _write_aside(directory: Path, content: bytes, *, mode: int) -> str:
    descriptor, aside = tempfile.mkstemp(prefix=UNFINISHED, dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(aside)
        raise
    return aside


def _sync(folder: Path) -> None:
    """Make renames in `folder` last."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _prune(directory: Path, *, keep: int) -> None:
    """Remove all but the `keep` newest snapshots; what the pointer names always stays."""
    try:
        named = orjson.loads((directory / POINTER).read_bytes())["snapshot"]
    except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError):
        return
    snapshots = sorted(directory.glob(SNAPSHOTS), key=lambda path: (path.stat().st_mtime_ns, path.name))
    for snapshot in snapshots[: max(0, len(snapshots) - keep)]:
        if snapshot.name != named:
            snapshot.unlink()
