"""Real ledgers to test with: a counted clock and ids, and one realistic event of each type."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from forge.domain.digest import sha256
from forge.events import Event, parse_event
from forge.events.candidate import CandidateDuplicated
from forge.ledger.ids import uuid7
from forge.ledger.store import Ledger

GOLDEN = Path(__file__).parent.parent / "events" / "golden"
LEDGER_ID = "019554d0-9c00-7abc-8def-0123456789ab"
ORIGIN = "kernels/example"
ABOUT_THE_LEDGER = {
    *("LedgerOpened", "CheckpointPublished", "LedgerKeyAdopted", "LedgerKeyRotated"),
    *("LedgerRestored", "LedgerImported"),
}
"""Events that say something of the ledger they stand in, which the audit checks."""
_ids: Iterator[int] = itertools.count(100_000)
"""Numbers behind ids and times. The golden ledgers were made with the first ones, which no new event may have."""


def now() -> datetime:
    return datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(microseconds=next(_ids))


def new_id() -> str:
    return uuid7(1_772_366_400_000, next(_ids).to_bytes(10, "big"))


def create(path: Path) -> Ledger:
    return Ledger.create(path, ledger_id=LEDGER_ID, origin=ORIGIN, forge_version="0.1.0", now=now, new_id=new_id)


def open_ledger(path: Path, *, read_only: bool = False) -> Ledger:
    return Ledger.open(path, now=now, new_id=new_id, read_only=read_only)


def examples() -> dict[str, Event]:
    """Type -> its golden event, but for those about the ledger that they stand in."""
    events = {}
    for path in sorted(GOLDEN.glob("*.json")):
        name, version, _ = path.name.split(".")
        if name not in ABOUT_THE_LEDGER:
            events[name] = parse_event(name, int(version.removeprefix("v")), path.read_bytes())
    return events


def duplicated(number: int, *, candidate: str = "a") -> CandidateDuplicated:
    """A small event of the stream `candidate:<digest of candidate>`."""
    return CandidateDuplicated(
        run_id="20260301T120000_rmsnorm_cpu_0a1b2c",
        task_id="t",
        candidate=sha256(candidate.encode()),
        earlier_seq=number,
    )


def stream_of(candidate: str) -> str:
    return duplicated(0, candidate=candidate).stream()


def fill(ledger: Ledger, count: int) -> None:
    """Append `count` small events over three streams."""
    for number in range(count):
        ledger.append([duplicated(number, candidate="abc"[number % 3])], actor="cli:ada@lab", correlation_id="fill")


def edit_as_owner(path: Path, sql: str) -> None:
    """Run SQL on a ledger as one who owns its file: the triggers are dropped for it and put back after it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.executescript(sql)
        for _, guard in guards:
            connection.execute(guard)
        connection.commit()
