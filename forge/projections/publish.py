"""Brings the published registry up to a ledger's head: first the tables, then the files that changed.

Only one process at a time publishes to a directory, and it reads the ledger's head when its turn comes. So an older
state never replaces a newer one. If a crash leaves work half done, the pointer is before the cursor, which shows it.
"""

import contextlib
import fcntl
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import orjson

from forge.domain.digest import sha256
from forge.errors import StorageFailed
from forge.events import KernelPromoted
from forge.ledger.durable import fsync_folder
from forge.projections import documents, leaderboard, models, operations, registry, snapshot, versions
from forge.projections.catch_up import FILE, Cursor, built, catch_up, publishing_errors
from forge.projections.files import content_of, put
from forge.projections.fold import Position, Source, holds
from forge.projections.snapshot import POINTER, SCHEMA_VERSION, Signer
from forge.projections.sqlite_file import ASIDE, connect, content_digest, overwrite

LOCK = ".publish.lock"
"""Name of the lock file in the published folder."""
PRIVATE_PREFIX = "forge-folded-"
"""Prefix of the private folder in which the tables are folded anew."""
REBUILD_COMMAND = "forge ledger rebuild"
"""Command that publishes again after the disk has refused."""
CHANGING = registry.TYPES | models.TYPES | operations.TYPES | {"EnvironmentCaptured"}
"""Types of events that may change what the registry's documents show."""
PROMOTED = "SELECT promoted_seq FROM kernels WHERE promoted_seq > ? ORDER BY promoted_seq"
"""Query for the numbers of promotions after an event."""


@dataclass(frozen=True, kw_only=True)
class StoredFiles:
    """Functions that give the published files which no table holds, and one that signs the pointer."""

    of_kernel: Callable[[KernelPromoted], Mapping[str, bytes]] = lambda _: {}
    of_operation: Callable[[str, str, str], Mapping[str, bytes]] = lambda *_: {}
    """Function from an operation and the digests of its description and its reference."""
    others: Callable[[Cursor], Mapping[str, bytes]] = lambda _: {}
    """Function that gives the files which are no projection."""
    sign: Signer = lambda _, __: None
    vouched: Callable[["PublishedPointer"], bool] | None = None
    """Function that says whether the key signed what is published; None if nothing is signed here."""


NOTHING_STORED = StoredFiles()
"""Functions of a publication that has the tables' files alone."""


@dataclass(frozen=True, slots=True)
class PublishedPointer:
    """The content of a published pointer."""

    snapshot: str
    sha256: str
    position: Position
    note: str | None = None
    """Note that the ledger's key signed for it."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One published file compared with what the ledger gives."""

    file: str
    state: Literal["identical", "made", "replaced"]
    sha256: str
    """Digest of its bytes; for `history.db`, of its rows."""


def publish(directory: Path, read: Callable[[], Source], stored: StoredFiles = NOTHING_STORED) -> Cursor:
    """Publish everything up to the head of the ledger that `read` opens; return the cursor there.

    Raises LedgerCorrupt, or StorageFailed if the disk refuses. What was published before then stays.
    """
    with publishing(directory):
        source = read()
        cursor, anew = catch_up(directory / FILE, source)
        shown = None if anew else read_pointer(directory)
        if shown is not None and _stands(directory, shown, cursor, source) and _is_believed(shown, source, stored):
            pointer = snapshot.with_note(snapshot.pointer_to(shown.sha256, cursor.head), stored.sign)
            put(directory, {**stored.others(cursor), POINTER: pointer})
        else:
            since = shown.position.seq if shown and shown.position.stands_in(source) else 0
            with _tables(directory, source, cursor, stored) as (connection, own):
                put(directory, _rendered(connection, source, own, stored, since=since))
        return cursor


def _is_believed(shown: PublishedPointer, source: Source, stored: StoredFiles) -> bool:
    """Return whether a published snapshot may stay.

    What the key is to sign, it must have signed before, and no event since then may have changed it.
    """
    if stored.vouched is None:
        return True
    return stored.vouched(shown) and all(line.type not in CHANGING for line in source.lines(shown.position.seq))


@contextlib.contextmanager
def _tables(
    directory: Path, source: Source, cursor: Cursor, stored: StoredFiles
) -> Iterator[tuple[sqlite3.Connection, Cursor]]:
    """Yield the tables to render from, and their cursor.

    What is to be signed is made of the events alone, in a private folder. Otherwise, a program that can write to the
    published folder could have the key sign what no event says.
    """
    if stored.vouched is None:
        with closing(connect(directory / FILE, read_only=True)) as connection:
            yield connection, cursor
        return
    with _folded(directory, source) as (aside, own):
        with closing(connect(aside, read_only=True)) as connection:
            yield connection, own
        overwrite(directory / FILE, aside)


@contextlib.contextmanager
def _folded(directory: Path, source: Source) -> Iterator[tuple[Path, Cursor]]:
    """Yield tables that are folded from the first event in a private folder, and their cursor."""
    with (
        publishing_errors(directory / FILE, source),
        tempfile.TemporaryDirectory(prefix=PRIVATE_PREFIX) as private,
        built(Path(private), source) as found,
    ):
        yield found


def republish(directory: Path, read: Callable[[], Source], stored: StoredFiles = NOTHING_STORED) -> list[Compared]:
    """Fold everything again from the first event, replace what is published, and return what differed."""
    with publishing(directory):
        source = read()
        with _folded(directory, source) as (aside, cursor):
            with closing(connect(aside, read_only=True)) as connection:
                files = _rendered(connection, source, cursor, stored, since=0)
                digest = content_digest(connection)
            compared = [_compared(directory, name, content) for name, content in files.items()]
            compared.append(_compared_tables(directory, digest))
            overwrite(directory / FILE, aside)
        put(directory, files)
        return sorted(compared, key=lambda one: one.file)


@contextlib.contextmanager
def publishing(directory: Path) -> Iterator[None]:
    """Hold the directory's lock while another publisher waits; a crash releases it.

    Raises StorageFailed if the lock can't be taken.
    """
    try:
        if not directory.is_dir():
            directory.mkdir(parents=True, exist_ok=True)
            fsync_folder(directory.parent)
        lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for leftover in directory.glob(f"{ASIDE}*"):
                leftover.unlink()
            yield
        finally:
            os.close(lock)
    except OSError as error:
        raise StorageFailed(
            f"can't publish to {str(directory)!r}: {error}; what was published before still stands: "
            f"free space or restore access, then run: {REBUILD_COMMAND}"
        ) from error


def withdraw(directory: Path) -> bool:
    """Remove the pointer, so that no lookup finds a registry; return whether it is gone. This takes no disk space."""
    try:
        (directory / POINTER).unlink(missing_ok=True)
    except OSError:
        return False
    return True


def read_pointer(directory: Path) -> PublishedPointer | None:
    """Return the published pointer; None if there is none, or it can't be read or has another schema."""
    try:
        document = orjson.loads(content_of(directory, POINTER) or b"")
        position = Position(**document["ledger"])
        if document["schema_version"] != SCHEMA_VERSION:
            return None
        return PublishedPointer(str(document["snapshot"]), str(document["sha256"]), position, document.get("note"))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


def _stands(directory: Path, shown: PublishedPointer, cursor: Cursor, source: Source) -> bool:
    """Return whether every document exists and is unchanged."""
    if shown.position.seq < cursor.registry_seq or not shown.position.stands_in(source):
        return False
    names = (shown.snapshot, documents.FILE, versions.FILE, leaderboard.FILE)
    return all((directory / name).is_file() for name in names)


def _rendered(
    connection: sqlite3.Connection, source: Source, cursor: Cursor, stored: StoredFiles, *, since: int
) -> dict[str, bytes]:
    """Return every published file by its name, of kernels only those that were promoted after `since`."""
    files = dict(stored.others(cursor))
    for (seq,) in connection.execute(PROMOTED, (since,)):
        promoted = source.event_at(seq)
        if holds(promoted, KernelPromoted):
            files |= stored.of_kernel(promoted.event)
    for op, description_sha256, reference_sha256 in connection.execute(documents.DESCRIBED):
        files |= stored.of_operation(op, description_sha256, reference_sha256)
    files |= documents.render(connection, cursor)
    files[POINTER] = snapshot.with_note(files[POINTER], stored.sign)
    return files


def _compared(directory: Path, name: str, content: bytes) -> Compared:
    if not os.path.lexists(directory / name):
        return Compared(name, "made", sha256(content))
    return Compared(name, "identical" if content_of(directory, name) == content else "replaced", sha256(content))


def _compared_tables(directory: Path, digest: str) -> Compared:
    """Compare `history.db` by its rows, because their layout in the file depends on the order of writing."""
    path = directory / FILE
    if not os.path.lexists(path):
        return Compared(FILE, "made", digest)
    try:
        with closing(connect(path, read_only=True)) as connection:
            same = content_digest(connection) == digest
    except sqlite3.DatabaseError:
        same = False
    return Compared(FILE, "identical" if same else "replaced", digest)
