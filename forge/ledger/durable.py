"""Writes files so that a name never stands for half of their content: write aside, fsync, rename, fsync."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from forge.errors import StorageFailed

PART_PREFIX = ".part-"
"""Prefix of the name of an unfinished file. Such files are never read. After a crash it is safe to delete them."""
PUBLIC = 0o644
"""Mode of a written note, proof or bundle: every user may read it."""
SIDE_BY_SIDE = 4
"""Number of files that are made durable at once. A disk's journal takes what waits together in one write. 14 small
files took 14 to 31 ms one by one, 4 to 10 ms by four, and no less by eight."""


def write_durably(target: Path, content: bytes, *, mode: int) -> None:
    """Write `content` to `target` in one step, replacing what is there; raise StorageFailed if that is refused."""
    with written_aside(target, mode=mode) as stream:
        stream.write(content)


def write_whole(target: Path, content: bytes, *, mode: int) -> None:
    """Write `content` to `target` in one step; a power cut may lose it, or part of it, until it is made durable."""
    with written_aside(target, mode=mode, durably=False) as stream:
        stream.write(content)


@contextmanager
def written_aside(target: Path, *, mode: int, durably: bool = True) -> Iterator[BinaryIO]:
    """Yield a file that replaces `target` if the block ends without an error; raise StorageFailed.

    If it is to be written `durably`, it is on disk then. A device or a pipe is refused: it would be gone afterwards.
    """
    try:
        _require_plain(target)
        descriptor, name = tempfile.mkstemp(prefix=PART_PREFIX, dir=target.parent)
    except OSError as error:
        raise _refused(target, error) from error
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            if durably:
                os.fsync(stream.fileno())
        os.rename(part, target)
        if durably:
            fsync_folder(target.parent)
    except OSError as error:
        raise _refused(target, error) from error
    finally:
        part.unlink(missing_ok=True)


def _require_plain(target: Path) -> None:
    """Raise StorageFailed if there is something else than a file or a link."""
    if target.exists() and not (target.is_file() or target.is_symlink()):
        raise StorageFailed(f"{target}: it isn't a plain file: expected a new name, or a file to replace")


def make_folder(folder: Path) -> None:
    """Make `folder` and its parents; each name is on disk when this returns."""
    missing = [step for step in (folder, *folder.parents) if not step.is_dir()]
    try:
        for step in reversed(missing):
            step.mkdir(exist_ok=True)
            fsync_folder(step.parent)
    except OSError as error:
        raise _refused(folder, error) from error


def fsync_file(path: Path) -> None:
    """Make the content of `path` survive a power cut."""
    _fsync(path, os.O_RDONLY | os.O_NOFOLLOW)


def fsync_folder(folder: Path) -> None:
    """Make renames and new names in `folder` survive a power cut."""
    _fsync(folder, os.O_RDONLY | os.O_DIRECTORY)


def fsync_all(files: Iterable[Path], folders: Iterable[Path]) -> None:
    """Make the content of files, and renames and new names in folders, survive a power cut; in no order."""
    side_by_side(
        [*(partial(fsync_file, path) for path in files), *(partial(fsync_folder, folder) for folder in folders)]
    )


def side_by_side(writes: Sequence[Callable[[], object]]) -> None:
    """Carry out all writes, a few at once and the last in this thread; raise the error of one that failed."""
    if not writes:
        return
    *others, last = writes
    if not others:
        last()
        return
    with ThreadPoolExecutor(SIDE_BY_SIDE - 1) as threads:
        waiting = [threads.submit(one) for one in others]
        last()
    for one in waiting:
        one.result()


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(target: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"{target}: the system refused to write ({error.strerror or error}); no part of it was left behind: "
        "free space or restore access, then run the command again"
    )
