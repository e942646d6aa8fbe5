"""Creates a ledger's file, whole or not at all.

The file is built in its own folder beside its final place, closed, and renamed. A process that is killed leaves at
most that folder, which the next attempt removes.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.errors import StorageFailed, UsageError
from forge.ledger.connection import require_local
from forge.ledger.durable import fsync_folder
from forge.ledger.lock import WriterLock


@contextmanager
def built_aside(path: Path) -> Iterator[Path]:
    """Yield a path to build at; if the block ends without an error, the file there is moved to `path`.

    Raises UsageError if a file is there already. A write-ahead log without its database counts too, because SQLite
    would read that log as the new ledger's.
    """
    path = Path(os.path.abspath(path))
    if not path.parent.is_dir():
        raise UsageError(f"no folder {str(path.parent)!r}: make it first")
    require_local(path.parent.resolve())
    lock = WriterLock(path)
    try:
        with lock.held():
            _refuse_existing(path)
            aside = path.with_name(f".{path.name}.new")
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            try:
                yield aside / path.name
                _move_into_place(aside / path.name, path)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    finally:
        lock.close()


def _refuse_existing(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-journal"):
        if os.path.lexists(path.with_name(name)):
            raise UsageError(f"{str(path.with_name(name))!r} exists: a new ledger needs a place of its own")


def _move_into_place(built: Path, path: Path) -> None:
    if os.path.lexists(f"{built}-wal"):
        raise StorageFailed(
            f"{built}: its write-ahead log wasn't merged on closing; nothing was created: try again, on a local disk"
        )
    os.rename(built, path)
    fsync_folder(path.parent)
