"""Opens the database file: checks where it lies, and applies the settings that make it durable."""

import re
import sqlite3
import stat
import sys
from pathlib import Path

from forge.errors import EnvironmentUnfit, LedgerCorrupt, StorageFailed, WorkspaceNotFound
from forge.ledger.audit.read_only import connect_to_read, require_regular_journal

BUSY_TIMEOUT_S = 30.0
"""Seconds that SQLite waits for a lock. Writers queue on the lock file, so this wait is rarely needed."""
MINIMUM_SQLITE = (3, 37, 0)
"""Oldest version of SQLite that has STRICT tables."""

_SETTINGS: tuple[tuple[str, str, object], ...] = (
    ("recursive_triggers", "ON", 1),  # REPLACE fires the delete trigger
    ("foreign_keys", "ON", 1),
    ("trusted_schema", "OFF", 0),  # a tampered schema can't call functions with side effects
    ("cell_size_check", "ON", 1),
)
"""Settings of every connection: name, value to set, value to read back."""
_WRITE_AHEAD = ("journal_mode", "WAL", "wal")
"""Setting of write-ahead mode: readers don't wait for the writer."""
_WRITER_SETTINGS: tuple[tuple[str, str, object], ...] = (
    ("synchronous", "FULL", 2),  # an acknowledged event survives a power cut; NORMAL loses the last ones
    ("journal_size_limit", "67108864", 67108864),
    ("fullfsync", "ON", 1),  # macOS: fsync alone stops at the drive's cache
    ("checkpoint_fullfsync", "ON", 1),
)
"""Settings of a writer's connection, in the same form."""

_SHARED_FILE_SYSTEMS = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|glusterfs|lustre|gpfs|beegfs|ocfs2|gfs2|vboxsf|prl_fs"
    r"|fuse\.(?!fuse-overlayfs$).+"
)
"""File systems on which locks or shared memory don't work between hosts (sqlite.org/wal.html: "WAL does not work over
a network filesystem")."""
_OCTAL = re.compile(r"\\([0-7]{3})")
"""Pattern of an escaped character in /proc/self/mountinfo."""


def connect(path: Path, *, read_only: bool, create: bool = False) -> sqlite3.Connection:
    """Open a database that exists, or that `create` makes; nothing of it is read yet.

    Raises EnvironmentUnfit if SQLite is older than 3.37, and LedgerCorrupt for a journal that is no regular file.
    """
    if sqlite3.sqlite_version_info < MINIMUM_SQLITE:
        raise EnvironmentUnfit(f"SQLite {sqlite3.sqlite_version} is too old: expected 3.37 or newer")
    if read_only:
        return connect_to_read(path, timeout_s=BUSY_TIMEOUT_S)
    require_regular_journal(path)
    mode = "rwc" if create else "rw"
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        cached_statements=256,
    )


def configure(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    """Apply every setting except write-ahead mode, and read it back; raise LedgerCorrupt if SQLite refused one."""
    for setting in _SETTINGS if read_only else _SETTINGS + _WRITER_SETTINGS:
        _apply(connection, path, setting)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)


def write_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """Put the file into write-ahead mode, which changes the file: only a writer calls it."""
    _apply(connection, path, _WRITE_AHEAD)


def _apply(connection: sqlite3.Connection, path: Path, setting: tuple[str, str, object]) -> None:
    name, value, expected = setting
    connection.execute(f"PRAGMA {name} = {value}")
    found = connection.execute(f"PRAGMA {name}").fetchone()[0]
    if found != expected:
        raise LedgerCorrupt(
            f"{path}: PRAGMA {name} is {found!r}, expected {expected!r}: this file or this SQLite can't "
            "keep the ledger's promises; move the workspace to a local disk"
        )


def resolve_existing(path: Path) -> Path:
    """Return the real path of a ledger; raise if it is absent, no regular file or on a shared disk.

    Symbolic links are followed here, once, so that the lock and the write-ahead log have one name. A second hard link
    would give the log a second name, and two writers would not see each other (sqlite.org/howtocorrupt.html).

    Raises WorkspaceNotFound without a file, StorageFailed if it can't be reached, and LedgerCorrupt for a file of
    another kind or with several hard links. Raises EnvironmentUnfit on a shared disk.
    """
    try:
        real = path.resolve(strict=True)
        found = real.stat()
    except FileNotFoundError:
        raise WorkspaceNotFound(f"no ledger at {str(path)!r}", hint="forge init") from None
    except (OSError, RuntimeError) as error:
        raise StorageFailed(
            f"{path}: can't be reached ({error}): expected folders and a file that this user may read"
        ) from error
    if not stat.S_ISREG(found.st_mode):
        raise LedgerCorrupt(f"{path}: expected a database file, found something that isn't a regular file")
    if found.st_nlink != 1:
        raise LedgerCorrupt(
            f"{path}: the database has {found.st_nlink} hard links, expected 1: "
            "copy it to a file of its own (a second name has a second write-ahead log)"
        )
    require_local(real)
    return real


def require_local(path: Path) -> None:
    """Raise EnvironmentUnfit if `path` is on a network or shared file system, as far as the system tells."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    except OSError:
        return
    kind = file_system_of(path, mounts)
    if kind is not None and _SHARED_FILE_SYSTEMS.fullmatch(kind):
        raise EnvironmentUnfit(
            f"{path} lies on {kind!r}, a shared file system, where SQLite's locks don't hold; "
            "keep the workspace on a local disk and copy sealed results from there"
        )


def file_system_of(path: Path, mountinfo: str) -> str | None:
    """Return the file system type of the mount that holds `path`; `mountinfo` is the text of proc(5)'s file."""
    best: tuple[int, str] | None = None
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = Path(_OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[4]))
        depth = len(point.parts)
        if path.is_relative_to(point) and (best is None or depth >= best[0]):
            best = (depth, after.split(" ")[0])
    return best[1] if best else None
