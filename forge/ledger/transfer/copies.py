"""Copies a ledger's parts: the database as it was at one moment, blobs, run folders.

The copy of the database isn't in write-ahead mode. It is one file, which can also be read from a read-only disk.
"""

import hashlib
import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from forge.errors import StorageFailed
from forge.ledger.audit.read_only import connect_to_read
from forge.ledger.blobs import DIGEST, READ_ONLY
from forge.ledger.durable import PART_PREFIX, fsync_file, fsync_folder, make_folder, written_aside
from forge.ledger.failures import storage_errors
from forge.ledger.runs.directory import OPEN_FILE
from forge.ledger.runs.names import CAS, OPEN_PREFIX, RUN_ID

Progress = Callable[[str], None]
PAGES_AT_ONCE = 2048
"""Number of pages copied between two messages of progress: 8 MiB, at SQLite's usual 4 KiB a page."""
_CHUNK_BYTES = 1 << 20
"""Number of bytes that are copied at a time. Chosen; it bounds memory."""
_RUN = re.compile(rf"run:({RUN_ID})")
"""Pattern of the stream of a run."""


def copy_database(source: sqlite3.Connection, target: Path, *, progress: Progress) -> None:
    """Copy what `source` sees to `target`, which is on disk when this returns.

    Inside a read transaction the copy shows one moment, however long it takes and whatever is written meanwhile.

    Raises StorageFailed if the copy can't be written.
    """

    def told(_status: int, remaining: int, total: int) -> None:
        progress(f"database {100 * (total - remaining) // max(1, total)} %")

    with storage_errors(target):
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            copy.execute("PRAGMA locking_mode = EXCLUSIVE")
            source.backup(copy, pages=PAGES_AT_ONCE, progress=told)
            (mode,) = copy.execute("PRAGMA journal_mode = DELETE").fetchone()
            if mode != "delete":
                raise StorageFailed(
                    f"{target}: its write-ahead log can't be merged; nothing was copied: copy again, to a local disk"
                )
        fsync_file(target)


def open_copy(path: Path) -> sqlite3.Connection:
    """Open a database only to copy it; raise SQLite's own error."""
    return connect_to_read(path, timeout_s=30)


def copy_blobs(source: Path, target: Path, *, progress: Progress) -> tuple[int, list[str]]:
    """Copy each intact blob that isn't there yet; return how many there are, and the damaged ones.

    Unfinished and damaged blobs aren't copied; `first_naming` finds out whether one of them is needed.
    """
    count, damaged = 0, []
    for path in sorted((source / CAS).glob("[0-9a-f][0-9a-f]/*")):
        if not DIGEST.fullmatch(path.name) or path.parent.name != path.name[:2]:
            continue
        copied = target / CAS / path.parent.name / path.name
        if not os.path.lexists(copied):
            make_folder(copied.parent)
            if _copy_file(path, copied, mode=READ_ONLY) != path.name:
                copied.unlink(missing_ok=True)
                damaged.append(path.name)
                continue
        count += 1
        if count % 500 == 0:
            progress(f"{count} blobs")
    return count, damaged


def first_naming(database: Path, digest: str) -> int | None:
    """Return the first event that names a blob; None if there is none."""
    with closing(open_copy(database)) as connection:
        found = connection.execute("SELECT seq FROM event WHERE instr(payload, ?) ORDER BY seq LIMIT 1", (digest,))
        row = found.fetchone()
    return int(row[0]) if row else None


def copy_run(source: Path, target: Path, *, sealed: bool) -> None:
    """Copy the regular files of a run's folder; a file that disappears meanwhile was moved by its own process."""
    aside = target.with_name(f"{PART_PREFIX}{target.name}")
    with storage_errors(target):
        shutil.rmtree(aside, ignore_errors=True)
        make_folder(aside)
        for path in _files(source):
            copied = aside / path.relative_to(source)
            make_folder(copied.parent)
            with suppress(FileNotFoundError):
                _copy_file(path, copied, mode=READ_ONLY if sealed else OPEN_FILE)
        os.rename(aside, target)
        fsync_folder(target.parent)


def runs_in(database: Path) -> dict[str, bool]:
    """Return the runs that a copied ledger knows and that weren't aborted -> whether each is sealed."""
    query = "SELECT type, stream FROM event WHERE type IN ('RunStarted', 'RunSealed', 'RunAborted') ORDER BY seq"
    runs: dict[str, bool] = {}
    with storage_errors(database), closing(open_copy(database)) as connection:
        for kind, stream in connection.execute(query):
            run_id = _RUN.fullmatch(str(stream))
            if run_id and kind == "RunAborted":
                runs.pop(run_id[1], None)
            elif run_id:
                runs[run_id[1]] = kind == "RunSealed"
    return runs


def run_folder(root: Path, run_id: str) -> Path | None:
    """Return the folder of a run's files, sealed or open; a link is ignored, because it leads out of the run."""
    places = (root / run_id, root / f"{OPEN_PREFIX}{run_id}")
    return next((path for path in places if path.is_dir() and not path.is_symlink()), None)


def make_durable(root: Path) -> None:
    """Make every name below `root` survive a power cut; the files' content is on disk already."""
    with storage_errors(root):
        for folder, _, _ in os.walk(root):
            fsync_folder(Path(folder))
        fsync_folder(root.parent)


def _files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(PART_PREFIX) and stat.S_ISREG(os.lstat(path).st_mode):
                yield path


def _copy_file(source: Path, target: Path, *, mode: int) -> str:
    """Copy a file, whole or not at all, and return the digest of what was copied."""
    digest = hashlib.sha256()
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(reading, "rb") as stream, written_aside(target, mode=mode) as copy:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
            copy.write(chunk)
    return digest.hexdigest()
