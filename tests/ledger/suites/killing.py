"""Kills writers, looks at what they left, and prints it as JSON. Run as a program of its own: it forks.

    python -m tests.ledger.suites.killing moments DB INTO KILLS SEED
    python -m tests.ledger.suites.killing boundaries DB INTO KILLS SEED
    python -m tests.ledger.suites.killing reopening DB INTO KILLS SEED
    python -m tests.ledger.suites.killing upgrading DB INTO KILLS SEED

A writer says over a pipe what was committed, after the commit; what it said must be there afterwards.
"""

import itertools
import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from forge.ledger.audit.history import audit
from forge.ledger.batch import Batch
from forge.ledger.writing import Head
from tests.ledger.suites import traced
from tests.ledger.suites.ledgers import duplicated, opened

KILLS_A_LEDGER = 25
"""Then a new one is begun: the audit after each kill reads all of it."""
BOUNDARIES_VARY = 16
"""How many calls fewer than the first time a writer may make: a busy page is asked for again."""
KEY = re.compile(r"(.*):(\d+)\.(\d+)#(\d+)")
Acknowledged = dict[str, int]


@dataclass
class Report:
    """What all kills together left."""

    kills: int = 0
    boundaries: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unacknowledged: int = 0
    """Events that were committed and not said any more: why a command has a key."""
    reopen_ms: list[float] = field(default_factory=list)
    events: int = 0


def shape_of(number: int) -> list[int]:
    """How many events each batch of the writer's n-th transaction has."""
    return [[1], [3], [1, 2, 4], [20]][number % 4]


def transaction(name: str, number: int) -> list[Batch]:
    return [
        Batch(
            events=[duplicated(number, candidate=f"{name}{place % 2}") for place in range(size)],
            actor=f"ci:{name}",
            correlation_id=name,
            idempotency_key=f"{name}:{number}.{part}",
        )
        for part, size in enumerate(shape_of(number))
    ]


def write(path: Path, acknowledge: int, name: str, numbers: Iterator[int]) -> None:
    """Commit transaction after transaction, and say each."""
    with opened(path) as ledger:
        for number in numbers:
            for part, appended in enumerate(ledger.append_many(transaction(name, number))):
                os.write(acknowledge, f"{name}:{number}.{part}#0 {appended.first_seq}\n".encode())


@contextmanager
def acknowledgements() -> Iterator[tuple[int, Callable[[], Acknowledged]]]:
    """The end to write to, and what was said on it once every writer is gone."""
    read_end, write_end = os.pipe()

    def said() -> Acknowledged:
        os.close(write_end)
        with open(read_end) as stream:
            return {key: int(seq) for key, seq in (line.split() for line in stream)}

    yield write_end, said


def writer(path: Path, acknowledge: int, name: str) -> int:
    """A child that writes until it is killed."""
    child = os.fork()
    if child == 0:
        try:
            write(path, acknowledge, name, itertools.count())
        finally:
            os._exit(1)
    return child


def kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the writer ended by itself: {status}"


def looked_at(path: Path, said: Acknowledged, report: Report, *, since: Head) -> Head:
    """Open the ledger again and hold what came after `since` against what was acknowledged; then write to it."""
    started = time.perf_counter()
    ledger = opened(path)
    report.reopen_ms.append(1e3 * (time.perf_counter() - started))
    with ledger:
        (before,) = ledger.rows(after_seq=since.seq - 1, limit=1)
        assert before.event_hash.hex() == since.event_hash, "history before the kill is another"
        stored = {row.idempotency_key: row.seq for row in ledger.rows(after_seq=since.seq) if row.idempotency_key}
        report.lost += [key for key, seq in said.items() if stored.get(key) != seq]
        report.torn += torn(stored)
        report.unacknowledged += sum(1 for key in stored if key.endswith("#0") and key not in said)
        ledger.append([duplicated(0)], actor="ci:after", correlation_id="after")
        report.kills += 1
        report.acknowledged += len(said)
        return ledger.head


def audited(path: Path, report: Report) -> None:
    found = audit(path)
    report.events = max(report.events, found.events)
    report.problems += [str(problem) for problem in found.problems]


def torn(stored: Collection[str]) -> list[str]:
    """Transactions of which some events are there and some aren't."""
    counted = Counter(match.group(1, 2) for match in map(KEY.fullmatch, stored) if match)
    return [
        f"{name}:{number}: {count} events"
        for (name, number), count in counted.items()
        if count != sum(shape_of(int(number)))
    ]


def head_of(path: Path) -> Head:
    with opened(path) as ledger:
        return ledger.head


def moments(base: Path, into: Path, kills: int, rng: random.Random) -> Report:
    """One or two writers, killed at any time."""
    report, path, head = Report(), base, head_of(base)
    longest_s = 0.05
    for number in range(kills):
        if number % KILLS_A_LEDGER == 0:
            path = Path(shutil.copy(base, into / f"moments-{number}.db"))
            head = head_of(path)
        with acknowledgements() as (end, said):
            writers = [writer(path, end, f"w{number}-{place}") for place in range(2 if number % 5 == 0 else 1)]
            for child in writers:
                time.sleep(rng.uniform(0, longest_s))
                kill(child)
            head = looked_at(path, said(), report, since=head)
        audited(path, report)
        if report.acknowledged <= 2 * number:  # a busy machine gave the writers no time
            longest_s *= 1.5
    return report


def boundaries(base: Path, into: Path, kills: int, rng: random.Random) -> Report:
    """One writer that opens, writes four transactions and closes; killed at file system calls, evenly spread."""
    report, head = Report(), head_of(base)

    def scenario(path: Path, end: int) -> Callable[[], None]:
        return lambda: write(path, end, "traced", iter(range(4)))

    with acknowledgements() as (end, said):
        report.boundaries = traced.killed_at(0, scenario(Path(shutil.copy(base, into / "whole.db")), end))
        assert len(said()) == 6
    step = max(1.0, report.boundaries / kills)
    first = rng.uniform(0, step)
    for fatal in sorted({int(first + step * place) + 1 for place in range(kills)}):
        if fatal > report.boundaries:
            continue
        path = Path(shutil.copy(base, into / f"boundary-{fatal}.db"))
        with acknowledgements() as (end, said):
            killed = traced.killed_at(fatal, scenario(path, end)) == -1
            assert killed or fatal > report.boundaries - BOUNDARIES_VARY, fatal
            looked_at(path, said(), report, since=head)
        audited(path, report)
        for left in into.glob(f"boundary-{fatal}.db*"):
            left.unlink()
    return report


def upgrading(base: Path, into: Path, kills: int, rng: random.Random) -> Report:
    """An older ledger, opened by a writer that is killed at file system calls, evenly spread."""
    report, found = Report(), audit(base)
    head = Head(found.events, str(found.head))

    def opening(path: Path) -> Callable[[], None]:
        return lambda: opened(path).close()

    opening(Path(shutil.copy(base, into / "first.db")))()  # what is imported for it is imported here, once
    report.boundaries = traced.killed_at(0, opening(Path(shutil.copy(base, into / "whole.db"))))
    for fatal in sorted(rng.sample(range(1, report.boundaries + 1), min(kills, report.boundaries))):
        path = Path(shutil.copy(base, into / f"upgrade-{fatal}.db"))
        if traced.killed_at(fatal, opening(path)) != -1:
            continue  # a few calls more or less are made each time
        journal = Path(f"{path}-journal").exists()  # who only reads can't play one back, and says so
        told = [str(problem) for problem in audit(path).problems]
        report.problems += [one for one in told if not (journal and "forge ledger recover" in one)]
        looked_at(path, {}, report, since=head)
        audited(path, report)
        for left in into.glob(f"upgrade-{fatal}.db*"):
            left.unlink()
    return report


def reopening(base: Path, into: Path, kills: int, rng: random.Random) -> Report:
    """A ledger as it stands, large if it is: killed writers, and how long it takes to be there again."""
    report, path = Report(), Path(shutil.copy(base, into / "large.db"))
    head = head_of(path)
    for number in range(kills):
        with acknowledgements() as (end, said):
            child = writer(path, end, f"w{number}")
            time.sleep(rng.uniform(0.01, 0.1))
            kill(child)
            head = looked_at(path, said(), report, since=head)
    audited(path, report)
    return report


def main() -> None:
    mode, base, into, kills, seed = sys.argv[1:]
    rounds = {"moments": moments, "boundaries": boundaries, "reopening": reopening, "upgrading": upgrading}[mode]
    if mode in ("boundaries", "upgrading") and not traced.possible():
        print(json.dumps({"skipped": "this machine doesn't let a parent trace its child"}))
        return
    print(json.dumps(asdict(rounds(Path(base), Path(into), int(kills), random.Random(int(seed))))))


if __name__ == "__main__":
    main()
