"""A database and its write-ahead log as files, and what can happen to them.

Two kinds of image. A *crash image* is what a power cut may leave: all that was synced before, and of what was being
written anything: each 512-byte sector old, new, zero or noise, the file cut short. From one, everything acknowledged
must come back. A *damaged image* had any of its bytes changed. From one, only a beginning of history may come back,
and whole batches; or it is refused.
"""

import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from forge.ledger.batch import Batch
from forge.ledger.store import Ledger
from tests.ledger.suites.ledgers import duplicated, opened

SECTOR_BYTES = 512
HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
"""Of the log, and of each page in it (sqlite.org/fileformat.html#walformat)."""


@dataclass(frozen=True)
class Files:
    """The database and its log at one moment."""

    database: bytes
    log: bytes

    @classmethod
    def read(cls, path: Path) -> "Files":
        return cls(path.read_bytes(), log_of(path).read_bytes())

    def write(self, path: Path) -> Path:
        """Put them down as a machine finds them when it starts: without the shared memory."""
        path.write_bytes(self.database)
        log_of(path).write_bytes(self.log)
        return path


@dataclass(frozen=True)
class Moment:
    """The files, and what was acknowledged by then."""

    files: Files
    head: int


@dataclass(frozen=True)
class Film:
    """One ledger from its first log to its second."""

    appended: tuple[Moment, ...]
    """After each transaction; the log grows, the database stays."""
    checkpointed: Files
    """The log was copied into the database, and hasn't begun anew yet."""
    restarted: Moment
    """The next transaction, at the beginning of the log."""
    hashes: tuple[bytes, ...]
    """Of every event, in order."""
    ends: frozenset[int]
    """The last event of each transaction, and 0."""


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def filmed(base: Path, folder: Path, transactions: int) -> Film:
    """Write a ledger and keep its files after each transaction."""
    path = Path(shutil.copy(base, folder / "filmed.db"))
    with opened(path) as ledger:
        appended = [_appended(ledger, path, number) for number in range(transactions)]
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        checkpointed = Files.read(path)
        restarted = _appended(ledger, path, transactions)
        hashes = tuple(row.event_hash for row in ledger.rows())
    assert {moment.files.database for moment in appended} == {appended[0].files.database}
    assert checkpointed.log == appended[-1].files.log
    assert restarted.files.database == checkpointed.database
    assert len(restarted.files.log) == len(checkpointed.log), "the log began anew in place"
    ends = frozenset({0, 1, *(moment.head for moment in appended), restarted.head})
    return Film(tuple(appended), checkpointed, restarted, hashes, ends)


def _appended(ledger: Ledger, path: Path, number: int) -> Moment:
    sizes = [[1], [3], [1, 2, 4], [20]][number % 4]
    batches = [
        Batch(
            events=[duplicated(number, candidate="abc"[place % 3]) for place in range(size)],
            actor="cli:ada",
            correlation_id="film",
            idempotency_key=f"{number}.{part}",
        )
        for part, size in enumerate(sizes)
    ]
    ledger.append_many(batches)
    return Moment(Files.read(path), ledger.head.seq)


def crash_images(film: Film, rng: random.Random) -> Moment:
    """What a power cut may leave while a transaction is written, the log is copied, or it begins anew."""
    phase = rng.choice(("appending", "appending", "copying", "beginning anew"))
    if phase == "copying":
        synced = film.appended[-1]
        database = mixed(synced.files.database, film.checkpointed.database, rng)
        return Moment(Files(database, synced.files.log), synced.head)
    if phase == "beginning anew":
        log = mixed(film.checkpointed.log, film.restarted.files.log, rng)
        return Moment(Files(film.checkpointed.database, log), film.appended[-1].head)
    place = rng.randrange(len(film.appended) - 1)
    synced, pending = film.appended[place], film.appended[place + 1]
    kept = synced.files.log
    log = mixed(kept, pending.files.log, rng)
    return Moment(Files(synced.files.database, kept + log[len(kept) :]), synced.head)


def mixed(old: bytes, new: bytes, rng: random.Random) -> bytes:
    """`old` on the way to being `new`: sectors of either, and where they differ also zeros or noise; cut anywhere."""
    shorter, longer = sorted((len(old), len(new)))
    length = rng.choice((longer, rng.randint(shorter, longer)))
    sectors = bytearray()
    written = rng.choice((1.0, rng.random()))
    for start in range(0, length, SECTOR_BYTES):
        before, after = old[start : start + SECTOR_BYTES], new[start : start + SECTOR_BYTES]
        if before == after:
            sectors += after
        elif rng.random() < written:
            sectors += after or before
        else:
            sectors += rng.choice((before.ljust(len(after), b"\0"), bytes(len(after)), rng.randbytes(len(after))))
    return bytes(sectors[:length])


Spoil = Callable[[bytes, random.Random], bytes]


def cut(log: bytes, rng: random.Random) -> bytes:
    return log[: rng.randrange(len(log))]


def garbled(log: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(log))
    noise = rng.randbytes(rng.choice((1, 8, 512, 4096)))
    return (log[:start] + noise + log[start + len(noise) :])[: len(log)]


def flipped(log: bytes, rng: random.Random) -> bytes:
    changed = bytearray(log)
    for _ in range(rng.randint(1, 5)):
        changed[rng.randrange(len(log))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def frames_repeated(log: bytes, rng: random.Random) -> bytes:
    """The last frames again at the end, as a writer might that lost count."""
    frame = FRAME_HEADER_BYTES + 4096
    return log + log[-frame * rng.randint(1, 4) :]


def frames_swapped(log: bytes, rng: random.Random) -> bytes:
    frame = FRAME_HEADER_BYTES + 4096
    frames = [log[start : start + frame] for start in range(HEADER_BYTES, len(log), frame)]
    one, other = rng.randrange(len(frames)), rng.randrange(len(frames))
    frames[one], frames[other] = frames[other], frames[one]
    return log[:HEADER_BYTES] + b"".join(frames)


def frame_left_out(log: bytes, rng: random.Random) -> bytes:
    frame = FRAME_HEADER_BYTES + 4096
    start = HEADER_BYTES + frame * rng.randrange((len(log) - HEADER_BYTES) // frame)
    return log[:start] + log[start + frame :]


def salts_changed(log: bytes, rng: random.Random) -> bytes:
    """In the header, or in one frame: they tell frames of this log from those of the last."""
    frame = FRAME_HEADER_BYTES + 4096
    place = rng.choice((16, HEADER_BYTES + frame * rng.randrange((len(log) - HEADER_BYTES) // frame) + 8))
    return log[:place] + rng.randbytes(8) + log[place + 8 :]


def emptied(log: bytes, rng: random.Random) -> bytes:
    return b""


SPOILS: Sequence[Spoil] = (
    cut,
    garbled,
    flipped,
    frames_repeated,
    frames_swapped,
    frame_left_out,
    salts_changed,
    emptied,
)
