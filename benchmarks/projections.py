"""What the projections cost: python benchmarks/projections.py [--events N] [--rounds N] [rebuild|catch-up|audit ...].

`rebuild`: one ledger of N events (a million by default), folded into `history.db` from the first event, against a
raw cursor that decodes every payload with orjson and folds a dictionary, and against the raw cursor that also
writes one narrow row for each event that leaves one; interleaved, each in a process of its own, with its peak
resident memory. `catch-up`: one event after 1,000 and after 100,000, folded and published. `audit`: four questions
to a `history.db` of N benchmarks, see audit_queries.py. With `--into docs/performance.json` the figures are kept
there, for benchmarks/page.py.
"""

import argparse
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
from audit_queries import GPUS, OPS, audit, seconds
from figures import Figure, shown, spread

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the histories are those of the tests

PROMOTED_EACH = 30
"""One run in so many ends in a promotion."""
PAGE = 1000
MEMORY_GOAL_MIB = 64
SPEED_GOAL = 0.9


def events_of(count: int, *, after: int = 1) -> Iterator[list[Any]]:  # Any: events
    """About `count` events after event `after`, run by run: half are refused, half measured, a few promoted."""
    from forge.events import Event
    from forge.events.plan import ChosenSkill, PlanAccepted
    from forge.events.prompt import PromptRendered
    from tests.projections.histories import History, Run
    from tests.projections.values import digest, task

    class Counting(History):
        """Hands events on and keeps none."""

        seq = 1

        def add(self, event: Event, *, hour: int = 3) -> int:  # noqa: ARG002
            self.seq += 1
            batch.append(event)
            return self.seq

    batch: list[object] = []
    history = Counting()
    history.seq = after
    skills = tuple(ChosenSkill(id=f"skill.{n}", sha256=digest(n), provider="forge", why="x" * 60) for n in range(4))
    wanted = [task(op=op, gpu=gpu) for op in OPS for gpu in GPUS]
    number = 0
    while history.seq < after - 1 + count:
        number += 1
        run = Run(history, wanted[number % len(wanted)], f"run {number}").start()
        ids = {"task_id": run.task.task_id, "run_id": run.run_id}
        history.add(
            PlanAccepted(**ids, skills=skills, queries=("q",), bottleneck_prior="memory", earlier_experiments=3)
        )
        digests = dict.fromkeys(("template_sha256", "rendered_sha256", "variables_sha256"), digest("t"))
        history.add(PromptRendered(**ids, template="t", template_version=1, **digests))
        run.submit().claim(2.0, "overstated").verify()
        if number % 2:
            run.fail("TOO_SLOW")
        else:
            run.benchmark(median_ns=1000.0 + number % 97, ratio=1.1 + number % 13 / 10)
        if number % PROMOTED_EACH == 0:
            run.promote(skills=tuple(one.id for one in skills))
        if len(batch) >= PAGE:
            yield batch
            batch.clear()
    if batch:
        yield batch


def now() -> datetime:
    return datetime.now(UTC)


def new_id() -> str:
    from forge.ledger.ids import uuid7

    return uuid7(time.time_ns() // 10**6, os.urandom(10))


def write_ledger(path: Path, count: int) -> None:
    """A ledger of `count` events and the rest of its last run."""
    from forge.ledger.store import Ledger

    with Ledger.create(path, ledger_id="bench", origin="bench", forge_version="0", now=now, new_id=new_id) as ledger:
        for batch in events_of(count):
            ledger.append(batch, actor="ci:bench", correlation_id="bench")


def raw(path: Path, *, write: bool) -> int:
    """The reference: a cursor, orjson, a dictionary; with `write`, also one narrow row of each leaving event."""
    seen: dict[str, tuple[int, str]] = {}
    leaving = {"CandidateSubmitted", "ClaimRecorded", "BenchmarkRecorded", "BenchmarkFailed", "CandidateVerified"}
    aside = sqlite3.connect(path.with_suffix(".raw.db"), isolation_level=None)
    aside.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; DROP TABLE IF EXISTS t; BEGIN")
    aside.execute("CREATE TABLE t (seq INTEGER PRIMARY KEY, run TEXT, candidate TEXT, at TEXT, what TEXT)")
    rows: list[tuple[object, ...]] = []
    count = 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        for seq, kind, at, payload in connection.execute("SELECT seq, type, recorded_at, payload FROM event"):
            event = orjson.loads(payload)
            seen[event.get("candidate", "")] = (seq, kind)
            count += 1
            if write and kind in leaving:
                rows.append((seq, event["run_id"], event["candidate"], at, kind))
                if len(rows) == PAGE:
                    aside.executemany("INSERT INTO t VALUES (?,?,?,?,?)", rows)
                    rows.clear()
    aside.execute("COMMIT")
    return count


def folded(path: Path) -> int:
    """The whole of `history.db` from the first event."""
    from forge.ledger.store import Ledger
    from forge.projections.catch_up import built
    from forge.projections.source import LedgerSource

    with (
        Ledger.open(path, now=now, new_id=new_id, read_only=True) as ledger,
        built(path.parent, LedgerSource(ledger)) as (_, cursor),
    ):
        return cursor.seq


WAYS: dict[str, Callable[[Path], int]] = {
    "raw cursor + orjson": lambda path: raw(path, write=False),
    "raw cursor + orjson + rows": lambda path: raw(path, write=True),
    "history.db": folded,
    "imports alone": lambda _: len(import_module("forge.projections.source").__name__),
}


def one_way(name: str, path: Path) -> None:
    """In a process of its own: events, seconds of the work with its imports, peak memory."""
    started = time.perf_counter()
    count = WAYS[name](path)
    seconds = time.perf_counter() - started
    print(json.dumps([count, seconds, peak_mib()]))


def peak_mib() -> float:
    """The largest resident set so far; getrusage would count the parent's, from before the exec."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rebuild(folder: Path, events: int, rounds: int) -> list[Figure]:
    path = folder / "large.db"
    write_ledger(path, events)
    taken: dict[str, list[tuple[int, float, float]]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name in random.sample(list(WAYS), len(WAYS)):
            command = [sys.executable, __file__, "--way", name, "--path", str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            taken[name].append(tuple(json.loads(done.stdout)))
    base, count = taken["raw cursor + orjson"], taken["history.db"][0][0]
    figures: list[Figure] = []
    for name, ones in taken.items():
        ratios = spread([one[1] / other[1] for one, other in zip(base, ones, strict=True)])
        peaks = spread([one[2] for one in ones])
        figures.append({"name": f"peak memory: {name}", "unit": "MiB", **peaks})
        if name == "history.db":
            reached = peaks["median"] <= MEMORY_GOAL_MIB
            figures[-1] |= {"goal": f"<= {MEMORY_GOAL_MIB} MiB", "reached": reached}
        if name not in ("imports alone", "raw cursor + orjson"):
            figures.append(
                {"name": f"rebuild of {count:,} events: {name} / raw cursor + orjson", "unit": "x", **ratios}
            )
        if name == "history.db":
            figures[-1] |= {"goal": f">= {SPEED_GOAL}", "reached": ratios["median"] >= SPEED_GOAL}
            rates = spread([count / one[1] for one in ones])
            figures.append({"name": f"rebuild of {count:,} events: {name}", "unit": "events/s", **rates})
    return figures


def catch_ups(folder: Path, rounds: int) -> list[Figure]:
    figures: list[Figure] = []
    for size in (1000, 100_000):
        path, root = folder / f"{size}.db", folder / f"registry-{size}"
        write_ledger(path, size)
        root.mkdir()
        for what, values in one_more(path, root, rounds).items():
            in_ms = spread([1e3 * value for value in values])
            figures.append({"name": f"one event after {size:,}: {what}", "unit": "ms", **in_ms})
    return figures


def one_more(path: Path, root: Path, rounds: int) -> dict[str, list[float]]:
    """One event appended, again and again: folded, folded and published, and asked for when there is nothing new."""
    from forge.domain.digest import sha256
    from forge.events.candidate import CandidateDuplicated
    from forge.ledger.store import Ledger
    from forge.projections.catch_up import FILE, catch_up
    from forge.projections.publish import publish
    from forge.projections.source import LedgerSource

    taken: dict[str, list[float]] = {"folded": [], "folded, published": [], "nothing new": []}
    with Ledger.open(path, now=now, new_id=new_id) as ledger:
        publish(root, lambda: LedgerSource(ledger))
        for number in range(rounds * 2):
            event = CandidateDuplicated(run_id="r", task_id="t", candidate=sha256(b"c"), earlier_seq=number)
            ledger.append((event,), actor="ci:bench", correlation_id="bench")
            if number % 2:
                taken["folded"].append(seconds(lambda: catch_up(root / FILE, LedgerSource(ledger))))
                taken["nothing new"].append(seconds(lambda: catch_up(root / FILE, LedgerSource(ledger))))
            else:
                taken["folded, published"].append(seconds(lambda: publish(root, lambda: LedgerSource(ledger))))
    return taken


def main() -> None:
    options = argparse.ArgumentParser(description="What the projections cost.")
    options.add_argument("sections", nargs="*", default=["rebuild", "catch-up", "audit"])
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--into", type=Path, help="a JSON document of benchmarks/ledger.py, to keep the figures in")
    options.add_argument("--way", help=argparse.SUPPRESS)
    options.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.way:
        one_way(chosen.way, chosen.path)
        return
    figures: list[Figure] = []
    for section in chosen.sections:
        with tempfile.TemporaryDirectory(prefix="forge-projections-") as folder:
            match section:
                case "rebuild":
                    found = rebuild(Path(folder), chosen.events, chosen.rounds)
                case "catch-up":
                    found = catch_ups(Path(folder), 50)
                case "audit":
                    found = audit(Path(folder), chosen.events, chosen.rounds)
                case _:
                    options.error(f"unknown section {section!r}: expected rebuild, catch-up or audit")
        print(section, "\n".join(map(shown, found)), sep="\n", flush=True)
        figures += found
    if chosen.into:
        keep(chosen.into, figures)


def keep(path: Path, figures: list[Figure]) -> None:
    """Put these in the place of those of the same name, and leave the others."""
    result = json.loads(path.read_text())
    kept = {one["name"]: one for one in result.get("projections", [])} | {one["name"]: one for one in figures}
    result["projections"] = list(kept.values())
    result["projections_load"] = max(result.get("projections_load", 0), round(os.getloadavg()[0], 1))
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
