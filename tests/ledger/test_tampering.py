"""What an owner of the file can do to history, and what finds it: alone, or against a checkpoint kept elsewhere."""

import base64
import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from forge.domain.digest import sha256
from forge.errors import CheckpointRefused
from forge.ledger.audit.history import audit
from forge.ledger.chain import StoredRow, sealed
from forge.ledger.merkle import complete_root
from forge.ledger.signatures.checkpoints import issue
from forge.ledger.signatures.keyring import Keyring
from forge.ledger.signatures.signing import log_name
from forge.ledger.statements import INSERT_EVENT
from forge.ledger.store import Ledger

from .making import LEDGER_ID, ORIGIN, fill, new_id, now, open_ledger

Tamper = Callable[[str], None]
EVENTS = 60
SEED = bytes(range(32))
OTHER = {
    "event_id": "019554d0-9c00-7abc-8def-ffffffffffff",
    "stream": "candidate:x",
    "stream_version": 99,
    "type": "KernelRevoked",
    "schema_version": 2,
    "recorded_at": "2020-01-01T00:00:00.000000Z",
    "actor": "cli:eve",
    "correlation_id": "other",
    "causation_id": "other",
    "idempotency_key": "other#0",
    "payload": '{"a":1}',
    "payload_sha256": bytes(32),
    "prev_hash": bytes(32),
    "event_hash": bytes(32),
}


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    return Keyring(tmp_path / "keys", log_name(ORIGIN, LEDGER_ID))


@pytest.fixture
def path(tmp_path: Path, keyring: Keyring, filled: Path) -> Path:
    """A ledger of the test's own, with the key that it names."""
    keyring.make(SEED)
    return Path(shutil.copy(filled, tmp_path / "kernel_registry.db"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger of many events; to be copied, never opened."""
    folder = tmp_path_factory.mktemp("filled")
    key = Keyring(folder / "keys", log_name(ORIGIN, LEDGER_ID)).make(SEED)
    path = folder / "kernel_registry.db"
    with Ledger.create(
        path,
        ledger_id=LEDGER_ID,
        origin=ORIGIN,
        forge_version="0.1.0",
        now=now,
        new_id=new_id,
        public_key=base64.b64encode(key.public).decode(),
    ) as ledger:
        fill(ledger, EVENTS)
    return path


@pytest.fixture
def kept(path: Path, keyring: Keyring) -> bytes:
    """A checkpoint that was copied off the machine."""
    with open_ledger(path) as ledger:
        note = issue(ledger, keyring, actor="cli:ada").note.encode()
        fill(ledger, 5)
    return note


def rewrite(path: Path, change: Callable[[list[StoredRow]], list[StoredRow]]) -> None:
    """Write history anew with every hash, place and tree node recomputed: what a careful forger does."""
    with closing(sqlite3.connect(path)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        rows = [StoredRow._make(row) for row in connection.execute("SELECT * FROM event ORDER BY seq")]
        (head,) = connection.execute("SELECT genesis_hash FROM ledger_meta").fetchone()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM event")
        connection.execute("DELETE FROM tree_node")
        versions: dict[str, int] = {}
        leaves = []
        for seq, row in enumerate(change(rows), start=1):
            versions[row.stream] = versions.get(row.stream, 0) + 1
            digest = hashlib.sha256(row.payload.encode()).digest()
            row = row._replace(seq=seq, stream_version=versions[row.stream], payload_sha256=digest, prev_hash=head)
            row = sealed(row)
            head = row.event_hash
            leaves.append(head)
            connection.execute(INSERT_EVENT, row)
        for place in range(len(leaves) // 16):
            node = complete_root(leaves[place * 16 : place * 16 + 16])
            connection.execute("INSERT INTO tree_node VALUES (4, ?, ?)", (place, node))
        for _, guard in guards:
            connection.execute(guard)
        connection.commit()


def without_signatures(rows: list[StoredRow]) -> list[StoredRow]:
    """A forger who hasn't got the key leaves out what he can't sign."""
    return [row for row in rows if row.type != "CheckpointPublished"]


def edited(rows: list[StoredRow]) -> list[StoredRow]:
    return [row._replace(actor="cli:eve") if row.seq == 7 else row for row in rows]


def shortened(rows: list[StoredRow]) -> list[StoredRow]:
    return [row for row in rows if row.seq != 7]


def lengthened(rows: list[StoredRow]) -> list[StoredRow]:
    added = rows[6]._replace(event_id=new_id())
    return [*rows[:7], added, *rows[7:]]


def swapped(rows: list[StoredRow]) -> list[StoredRow]:
    return [*rows[:6], rows[7], rows[6], *rows[8:]]


FORGERIES = [edited, shortened, lengthened, swapped]


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: one.__name__)
def test_a_full_rewrite_is_sound_by_itself_and_found_against_a_checkpoint(
    forgery: Callable[[list[StoredRow]], list[StoredRow]], path: Path, kept: bytes
) -> None:
    rewrite(path, lambda rows: forgery(without_signatures(rows)))
    assert audit(path).ok, audit(path).problems
    report = audit(path, checkpoint=kept)
    assert not report.ok
    assert report.checkpoint.verdict == "rewritten"
    assert report.problems[0].what == "checkpoint"


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: one.__name__)
def test_a_rewrite_that_keeps_the_recorded_checkpoint_contradicts_it(
    forgery: Callable[[list[StoredRow]], list[StoredRow]], path: Path, kept: bytes
) -> None:
    rewrite(path, forgery)
    report = audit(path)
    assert report.problems[0].what == f"root at {EVENTS + 1}"
    assert report.signed == 0


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda one: one.__name__)
def test_the_key_does_not_sign_a_rewrite(
    forgery: Callable[[list[StoredRow]], list[StoredRow]], path: Path, kept: bytes, keyring: Keyring
) -> None:
    rewrite(path, lambda rows: forgery(without_signatures(rows)))
    with open_ledger(path) as ledger, pytest.raises(CheckpointRefused, match="rewritten"):
        issue(ledger, keyring, actor="cli:ada")


def test_a_rewrite_from_the_first_event_with_another_key_is_found(path: Path, kept: bytes) -> None:
    def stolen(rows: list[StoredRow]) -> list[StoredRow]:
        old = base64.b64encode(base64.b64decode(rows[0].payload.split('"public_key":"')[1].split('"')[0])).decode()
        payload = rows[0].payload.replace(old, base64.b64encode(bytes(32)).decode())
        return [rows[0]._replace(payload=payload), *without_signatures(rows)[1:]]

    rewrite(path, stolen)
    report = audit(path, checkpoint=kept)
    assert (report.ok, report.checkpoint.verdict) == (False, "not_signed")


@pytest.mark.parametrize("left", [1, 2, EVENTS // 2, EVENTS])
def test_every_truncation_is_found_against_a_checkpoint(left: int, path: Path, kept: bytes) -> None:
    rewrite(path, lambda rows: rows[:left])
    assert audit(path).ok
    report = audit(path, checkpoint=kept)
    assert (report.ok, report.checkpoint.verdict) == (False, "truncated")


def test_cutting_off_what_came_after_the_checkpoint_does_not_contradict_it(path: Path, kept: bytes) -> None:
    rewrite(path, lambda rows: rows[: EVENTS + 1])
    assert audit(path, checkpoint=kept).checkpoint.verdict == "consistent"


@pytest.mark.parametrize("column", OTHER)
@pytest.mark.parametrize("seq", [1, 16, 17, EVENTS + 6])
def test_an_edit_of_any_column_of_any_row_is_found_and_named(
    column: str, seq: int, path: Path, kept: bytes, tamper: Tamper
) -> None:
    value = OTHER[column]
    text = f"x'{value.hex()}'" if isinstance(value, bytes) else repr(value)
    tamper(f"UPDATE event SET {column} = {text} WHERE seq = {seq}")
    report = audit(path)
    assert not report.ok
    assert report.problems[0].seq == seq


def test_a_replaced_row_is_found_though_every_trigger_is_back(path: Path, kept: bytes, tamper: Tamper) -> None:
    tamper(
        "CREATE TEMP TABLE t AS SELECT * FROM event WHERE seq = 20; UPDATE t SET actor = 'cli:eve';"
        "INSERT OR REPLACE INTO event SELECT * FROM t"
    )
    assert audit(path).problems[0].seq == 20


@pytest.mark.parametrize(
    "name", ["tree_node_refuses_update", "tree_node_refuses_delete", "tree_node_accepts_only_the_next"]
)
def test_a_dropped_trigger_is_named(name: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DROP TRIGGER {name}")
    assert audit(path).problems[0].what == f"trigger {name}"


def test_all_problems_are_listed_on_demand(path: Path, tamper: Tamper, tmp_path: Path) -> None:
    with open_ledger(path) as ledger:
        fill(ledger, 1100)
    tamper("UPDATE event SET actor = 'cli:eve'")
    assert 1000 <= len(audit(path).problems) < 1100
    assert len(audit(path, full=True).problems) >= EVENTS + 1100


def test_a_blob_that_no_event_names_is_hashed_on_demand(path: Path, tmp_path: Path) -> None:
    runs = tmp_path / "forge_runs"
    digest = sha256(b"content")
    (runs / "cas" / digest[:2]).mkdir(parents=True)
    (runs / "cas" / digest[:2] / digest).write_bytes(b"another")
    assert audit(path, runs=runs).ok
    (problem,) = audit(path, runs=runs, full=True).problems
    assert (problem.what, problem.expected) == ("blob that no event names", digest)
