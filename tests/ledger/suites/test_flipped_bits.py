"""Single bits of the file flipped: each is refused, or found, or shown to lie where nothing is recorded.

The decision is made three times over. The audit must be silent; every row read through every table and index must
be what it was; and a walk over the file's pages, which uses no SQLite, must say that the byte holds nothing.
"""

import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from forge.errors import ForgeError
from forge.ledger.audit.history import audit
from tests.ledger.suites.ledgers import fill, opened
from tests.ledger.suites.pages import ENCODING, Pages
from tests.ledger.suites.sizes import rounds

SEED = 20261121
Content = dict[str, list[tuple[object, ...]]]


@pytest.fixture(scope="module")
def filled(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger: one file, no log."""
    path = Path(shutil.copy(finished, tmp_path_factory.mktemp("flips") / "k.db"))
    with opened(path) as ledger:
        fill(ledger, 60)
    assert not path.with_name("k.db-wal").exists()
    return path


def content(path: Path) -> Content:
    """Every row of every table, by each of its indexes too, the schema, and what the header says of the format."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        found: Content = {"schema": connection.execute("SELECT * FROM sqlite_master ORDER BY name").fetchall()}
        for pragma in ("application_id", "user_version", "encoding", "page_size", "auto_vacuum"):
            found[pragma] = connection.execute(f"PRAGMA {pragma}").fetchall()
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            name = table.decode()
            found[name] = sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
            for index in connection.execute(f"PRAGMA index_list({name})").fetchall():
                through = index[1].decode()
                query = f"SELECT * FROM {name} INDEXED BY {through}"
                found[through] = sorted(connection.execute(query).fetchall(), key=repr)
    return found


def usable(path: Path) -> bool:
    """Whether the next writer either gets a sound ledger or a reason."""
    try:
        with opened(path) as ledger:
            fill(ledger, 1)
    except ForgeError as refused:
        return bool(refused.message)
    return audit(path).ok


def test_the_walk_over_the_pages_knows_every_byte_that_sqlite_reads(filled: Path) -> None:
    """Whatever it calls unused may be noise, all of it at once, and nothing changes."""
    original = filled.read_bytes()
    pages = Pages(original)
    noise = random.Random(SEED)
    changed = bytes(
        noise.randrange(256) if pages.unused(place, 0) == "free space" else byte
        for place, byte in enumerate(original)
    )
    assert sum(one != other for one, other in zip(original, changed, strict=True)) > len(original) // 10
    before = content(filled)
    filled_with_noise = filled.with_name("noise.db")
    filled_with_noise.write_bytes(changed)
    assert content(filled_with_noise) == before
    assert audit(filled_with_noise).ok


@pytest.mark.slow
def test_every_flipped_bit_is_refused_or_found_or_means_nothing(filled: Path, tmp_path: Path) -> None:
    original = filled.read_bytes()
    pages, before = Pages(original), content(filled)
    rng = random.Random(SEED)
    found = Counter[str]()
    path = tmp_path / "flipped.db"
    for number in range(rounds(200, long=10_000)):
        place = rng.randrange(100) if number % 25 == 0 else rng.randrange(len(original))
        bit = rng.randrange(8)
        changed = bytearray(original)
        changed[place] ^= 1 << bit
        for left in tmp_path.glob("flipped.db*"):
            left.unlink()
        path.write_bytes(changed)
        report = audit(path)
        if not report.ok:
            found["unreadable" if report.problems[0].what == "database" else "found"] += 1
            assert report.problems[0].found
            continue
        unused = pages.unused(place, bit)
        assert unused, f"bit {bit} of byte {place} is content, and nothing noticed"
        assert content(path) == before
        assert usable(path), "sound by the audit, and neither written to nor refused"
        found[unused] += 1
    print(dict(found))
    assert found["found"] > found["unreadable"]
    assert found["free space"]


def test_an_encoding_that_is_left_unsaid_changes_nothing_and_another_one_is_found(filled: Path) -> None:
    before = content(filled)
    original = filled.read_bytes()
    for bit in range(8):
        changed = bytearray(original)
        changed[ENCODING] ^= 1 << bit
        path = filled.with_name("encoded.db")
        path.write_bytes(changed)
        if Pages(original).unused(ENCODING, bit) is None:
            assert not audit(path).ok
        else:
            assert audit(path).ok
            assert content(path) == before
            assert usable(path)


WITHOUT_STRICT = "UPDATE sqlite_master SET sql = replace(sql, ') STRICT', ')') WHERE name = 'event'"
STRICT_AGAIN = "UPDATE sqlite_master SET sql = sql || ' STRICT' WHERE name = 'event'"


@pytest.mark.parametrize(
    "steps",
    [
        [WITHOUT_STRICT, "UPDATE event SET schema_version = x'61' WHERE seq = 30", STRICT_AGAIN],
        [WITHOUT_STRICT, "UPDATE event SET stream_version = 'many' WHERE seq = 30", STRICT_AGAIN],
        [WITHOUT_STRICT, "UPDATE event SET correlation_id = x'6162' WHERE seq = 30", STRICT_AGAIN],
        ["UPDATE sqlite_master SET type = CAST(type AS BLOB) WHERE name = 'ix_event_type_seq'"],
        ["UPDATE sqlite_master SET sql = CAST(x'43524541544520ce20ce' AS TEXT) WHERE name = 'event_refuses_update'"],
        ["UPDATE sqlite_master SET name = CAST(x'ce' AS TEXT) WHERE name = 'ix_event_type_seq'"],
        ["UPDATE sqlite_master SET rootpage = 99999 WHERE name = 'event'"],
        ["UPDATE sqlite_master SET type = 'inde|' WHERE name = 'sqlite_autoindex_alembic_version_1'"],
    ],
    ids=[
        *("a number is a blob", "a number is text", "a text is a blob", "a kind is a blob"),
        *("SQL is no text", "a name is no text", "a table is nowhere", "a tool's index is nothing"),
    ],
)
def test_values_of_another_kind_are_found_and_never_a_traceback(
    steps: list[str], filled: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(filled, tmp_path / "k.db"))
    for sql in steps:  # each on a connection of its own: the schema is read anew
        with closing(sqlite3.connect(path)) as connection:
            guard = "DROP TRIGGER event_refuses_update" if sql.startswith("UPDATE event ") else "SELECT 1"
            (made,) = connection.execute(
                "SELECT sql FROM sqlite_master WHERE name = 'event_refuses_update'"
            ).fetchone()
            connection.execute(guard)
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(sql)
            connection.commit()
            if guard.startswith("DROP"):
                connection.execute(made)
    report = audit(path)
    assert not report.ok
    with pytest.raises(ForgeError), opened(path) as ledger:
        for _ in ledger.read():
            pass
