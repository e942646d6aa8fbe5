"""Edits of the database as bytes: header, pages, free space, the log and the journal beside it."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.ledger.edits.copy import Copy, Edit

PAGE_BYTES = 4096
COUNTER = "it tells connections that the file changed, and says nothing of its content"
NO_LOG = "SQLite takes no frame whose checksum is wrong: the database is as it was"
UNUSED = "no table and no index reads these bytes"


def _at(place: int, content: bytes) -> Callable[[Copy], None]:
    """Other bytes at a place; SQLite's file format, section 1.3, says which."""

    def act(copy: Copy) -> None:
        with open(copy.path, "r+b") as file:
            file.seek(place)
            file.write(content)

    return act


def _truncated(keep: Callable[[int], int]) -> Callable[[Copy], None]:
    return lambda copy: os.truncate(copy.path, keep(copy.path.stat().st_size))


def _page_of(copy: Copy, name: str) -> int:
    """The first byte of a table's root page."""
    with closing(sqlite3.connect(copy.path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    return (page - 1) * PAGE_BYTES


def _root_page(name: str, content: bytes) -> Callable[[Copy], None]:
    return lambda copy: _at(_page_of(copy, name), content)(copy)


def _stray_letter(copy: Copy) -> None:
    """One letter of a payload in the file itself."""
    content = copy.path.read_bytes()
    place = content.index(b'"author":"forge') + len(b'"author":"')
    _at(place, b"e")(copy)


def _entry_of_an_index(copy: Copy) -> None:
    """One letter of an event type, in the index alone."""
    start = _page_of(copy, "ix_event_type_seq")
    content = copy.path.read_bytes()[start : start + PAGE_BYTES]
    _at(start + content.index(b"ProfileCaptured"), b"Q")(copy)


def _gap_of_a_page(copy: Copy) -> None:
    """Bytes between the cells' places and the cells of the one page of ledger_meta."""
    start = _page_of(copy, "ledger_meta")
    _at(start + 100, b"\xaa" * 16)(copy)


def _log(copy: Copy) -> Path:
    return copy.path.with_name(f"{copy.path.name}-wal")


def _committed_in_the_log(copy: Copy) -> None:
    """An edit that stands in the write-ahead log alone, as a crash would leave it."""
    aside = copy.home / "aside"
    aside.mkdir()
    shutil.copy(copy.path, aside / "k.db")
    other = Copy(aside)
    os.rename(aside / "k.db", other.path)
    with closing(sqlite3.connect(other.path)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("DROP TRIGGER event_refuses_update")
        connection.execute("UPDATE event SET actor = 'cli:eve' WHERE seq = 5")
        connection.commit()
        shutil.copy(_log(other), _log(copy))
        shutil.copy(other.path, copy.path)
    shutil.rmtree(aside)


def _replaced(content: bytes) -> Callable[[Copy], None]:
    return lambda copy: [copy.path.write_bytes(content), None][1]


PAGES = (
    Edit("another magic word", _at(0, b"Sqlite")),
    Edit("another page size", _at(16, b"\x04\x00")),
    Edit("another text encoding", _at(56, b"\x00\x00\x00\x02")),
    Edit("free pages that aren't there", _at(36, b"\x00\x00\x00\x03")),
    Edit("another change counter", _at(24, b"\x00\x00\x07\x77"), "nothing", COUNTER),
    Edit("one letter of a payload, in the file itself", _stray_letter),
    Edit("one letter of an index", _entry_of_an_index),
    Edit("the root page of the events zeroed", _root_page("event", bytes(PAGE_BYTES))),
    Edit("the root page of the tree noise", _root_page("tree_node", b"\xa5" * PAGE_BYTES)),
    Edit("bytes between the cells of a page", _gap_of_a_page, "nothing", UNUSED),
    Edit("the last page cut off", _truncated(lambda size: size - PAGE_BYTES)),
    Edit("half of the file cut off", _truncated(lambda size: size // 2)),
    Edit("an empty file", _replaced(b"")),
    Edit("a text in its place", _replaced(b"no database\n" * 1000)),
    Edit("noise as a write-ahead log", lambda copy: _noise(_log(copy)), "nothing", NO_LOG),
    Edit("an edit in the write-ahead log", _committed_in_the_log),
)


def _noise(path: Path) -> None:
    path.write_bytes(b"\x5a" * 8192)
