"""What the ledger costs beside other ways to do the same: python benchmarks/ledger.py [--json] [--events N].

Contenders are interleaved: each round runs one slice of every one of them in random order, and a ratio is taken
within a round. Printed is the median over the rounds, with quartiles: a busy machine moves all contenders of a round
alike. `processor` ratios leave out what is spent waiting for the disk, which on a busy machine is nearly everything.
The `eventsourcing` library is compared if it is there: pip install eventsourcing.
"""

import argparse
import gc
import hashlib
import json
import os
import platform
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import contenders
import orjson
from contenders import BATCH, Contender
from figures import Figure, goal, limit, shown, spread

from forge.ledger.audit.history import audit
from forge.ledger.chain import StoredRow, envelope, event_hash
from forge.ledger.signatures.signing import SigningKey, checkpoint_text, signed_note
from forge.ledger.store import Ledger
from forge.proof.note import opened, parse_key, parse_note
from forge.proof.tree import included

SLICE = 100
FILL = 1000
PROOFS = 300
FSYNCS = 300
PAGE_BYTES = 4096


class Taken(NamedTuple):
    """How long something took, and how much of it the processor worked for us."""

    wall_s: float
    processor_s: float


def timed(work: Callable[[], object]) -> Taken:
    """Run it once, with the collector's work done before."""
    gc.collect()
    started, worked = time.perf_counter(), time.process_time()
    work()
    return Taken(time.perf_counter() - started, time.process_time() - worked)


def interleaved(work: dict[str, Callable[[int], Taken]], rounds: int) -> dict[str, list[Taken]]:
    """What each contender took in each round; the first round only warms up."""
    taken: dict[str, list[Taken]] = {name: [] for name in work}
    for number in range(rounds + 1):
        for name in random.sample(list(work), len(work)):
            taken[name].append(work[name](number))
    return {name: values[1:] for name, values in taken.items()}


def ratio(slower: list[Taken], faster: list[Taken], *, processor: bool = False) -> dict[str, float]:
    """How many times as fast the second is, round by round."""
    return spread([one[processor] / other[processor] for one, other in zip(slower, faster, strict=True)])


def appends(folder: Path, rounds: int) -> tuple[list[Figure], list[Figure]]:
    """Rates of every contender, one event a transaction and a hundred; and how ours compares."""
    made: dict[str, Contender | None] = {
        "sqlite3 INSERT": contenders.Driver(folder / "driver.db"),
        "forge": contenders.Forge(folder / "forge.db"),
        "SQLModel session": contenders.session(folder / "session.db"),
        "SQLModel session, same rules": contenders.ruled_session(folder / "ruled.db"),
        "eventsourcing": contenders.library(folder / "library.db"),
    }
    if made["eventsourcing"] is None:
        print("eventsourcing isn't installed and is left out: pip install eventsourcing", file=sys.stderr)
    there = {name: one for name, one in made.items() if one is not None}

    def slices(contender: Contender, method: str, place: int) -> Callable[[int], Taken]:
        def run(number: int) -> Taken:
            contender.ready((2 * number + place) * SLICE, SLICE)
            return timed(getattr(contender, method))

        return run

    work = {name: slices(one, "single", 0) for name, one in there.items()}
    work |= {f"{name} x{BATCH}": slices(one, "many", 1) for name, one in there.items()}
    taken = interleaved(work, rounds)
    rates = [
        {"name": name, **spread([SLICE / value.wall_s for value in values]), "unit": "events/s"}
        for name, values in taken.items()
    ]
    hundred = f"x{BATCH}"
    pairs = [
        ("append / sqlite3 autocommit INSERT", "sqlite3 INSERT", "forge", 0.60),
        ("append / SQLModel session, bare table, ready values", "SQLModel session", "forge", 3),
        ("append / SQLModel session, same rules", "SQLModel session, same rules", "forge", 3),
        (f"append_many({BATCH}) / append", "forge", f"forge {hundred}", 7),
        ("append / eventsourcing get and save", "eventsourcing", "forge", 3.5),
    ]
    compared = [
        {"name": f"processor time of an append: {name}", "unit": "us", **processor_us(taken[name])} for name in there
    ] + [fsyncs(folder)]
    for name, slower, faster, wanted in pairs:
        if slower in taken:
            compared.append(goal(name, ratio(taken[slower], taken[faster]), wanted))
            worked = ratio(taken[slower], taken[faster], processor=True)
            compared.append({"name": f"processor: {name}", **worked, "unit": "x"})
    return rates, compared


def processor_us(taken: list[Taken]) -> dict[str, float]:
    return spread([1e6 * one.processor_s / SLICE for one in taken])


def fsyncs(folder: Path) -> Figure:
    """What this disk takes to make one page durable: all that an append waits for."""
    waited = []
    with open(folder / "page", "wb") as file:
        for _ in range(FSYNCS):
            file.seek(0)
            file.write(os.urandom(PAGE_BYTES))
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            waited.append(1e6 * (time.perf_counter() - started))
    return {"name": "fdatasync of one page", "unit": "us", **spread(waited)}


def filled(folder: Path, events: int) -> Path:
    """A ledger of so many events."""
    path = folder / "large.db"
    with contenders.create(path) as ledger:
        for first in range(0, events, FILL):
            ledger.append_many([contenders.batch(number) for number in range(first, min(first + FILL, events))])
    return path


def reading(path: Path, rounds: int) -> list[Figure]:
    """The audit beside hashlib, and reading all events beside a bare cursor."""
    with closing(sqlite3.connect(path)) as connection:
        rows = [StoredRow._make(values) for values in connection.execute("SELECT * FROM event ORDER BY seq")]
    hashed = [(row.payload.encode(), b"\x00" + envelope(row)) for row in rows]
    nodes = len(rows)
    del rows

    def hashlib_alone() -> None:
        """What can't be saved: each payload's digest, each envelope's, and one node of the tree for each event."""
        sha256, pair = hashlib.sha256, bytes(65)
        for payload, sealed in hashed:
            sha256(payload).digest()
            sha256(sealed).digest()
        for _ in range(nodes):
            sha256(pair).digest()

    def cursor() -> None:
        with closing(sqlite3.connect(path)) as bare:
            for (payload,) in bare.execute("SELECT payload FROM event ORDER BY seq"):
                orjson.loads(payload)

    def replayed() -> None:
        with _opened(path) as ledger:
            for _ in ledger.read():
                pass

    def audited() -> None:
        report = audit(path)
        assert report.ok, report.problems

    work = {"hashlib": hashlib_alone, "cursor": cursor, "read": replayed, "audit": audited}
    taken = interleaved({name: lambda _, one=one: timed(one) for name, one in work.items()}, rounds)  # type: ignore[misc]
    return [
        goal(
            "processor: verify / hashlib's own speed", ratio(taken["hashlib"], taken["audit"], processor=True), 0.22
        ),
        *(
            {"name": name, **spread([nodes / one.processor_s for one in taken[what]]), "unit": "events/s"}
            for name, what in (("verify", "audit"), ("read as events", "read"), ("bare cursor with orjson", "cursor"))
        ),
    ]


def _opened(path: Path) -> Ledger:
    return Ledger.open(path, now=lambda: datetime.now(UTC), new_id=contenders.new_id)


def proofs(path: Path) -> list[Figure]:
    """One event's proof: made, and checked with the signed note as a stranger does."""
    key = SigningKey("bench", os.urandom(32))
    made, checked = [], []
    with _opened(path) as ledger:
        for seq in random.sample(range(1, ledger.head.seq + 1), PROOFS):
            (row,) = ledger.rows(after_seq=seq - 1, limit=1)
            started = time.perf_counter()
            with ledger.tree() as tree:
                size, places, root = tree.size, tree.inclusion(seq - 1, tree.size), tree.root()
            made.append(1e3 * (time.perf_counter() - started))
            note = signed_note(checkpoint_text("bench", size, root), [key]).encode()
            verifier = parse_key(key.verifier)
            started = time.perf_counter()
            opened(parse_note(note), [verifier])
            held = included(event_hash(row), seq - 1, size, places, root)
            checked.append(1e3 * (time.perf_counter() - started))
            assert held
    return [limit("proof made", spread(made), 1), limit("proof and signature checked", spread(checked), 1)]


def reopenings(path: Path, rounds: int) -> list[Figure]:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        ledger = _opened(path)
        taken.append(1e3 * (time.perf_counter() - started))
        ledger.close()
    return [limit("reopen", spread(taken), 50)]


def measured(events: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="forge-ledger-") as name:
        folder = Path(name)
        load_before = os.getloadavg()[0]
        rates, compared = appends(folder, rounds)
        path = filled(folder, events)
        return {
            "machine": {
                "cpu": f"{os.cpu_count()} x {platform.machine()}",
                "python": platform.python_version(),
                "sqlite": sqlite3.sqlite_version,
                "load": [round(load_before, 1), round(os.getloadavg()[0], 1)],
            },
            "events": events,
            "rounds": rounds,
            "rates": rates,
            "figures": [*compared, *reading(path, max(5, rounds // 8)), *proofs(path), *reopenings(path, 30)],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000, help="of the ledger that is read, proven and reopened")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    result = measured(asked.events, asked.rounds)
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    print(f"{result['machine']}, {asked.rounds} rounds of {SLICE} events")
    print("\n".join(map(shown, result["rates"] + result["figures"])))


if __name__ == "__main__":
    main()
