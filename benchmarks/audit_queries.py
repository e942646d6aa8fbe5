"""Four questions of an audit, asked of a `history.db` of many benchmarks; run by benchmarks/projections.py."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from figures import Figure, limit, spread

if TYPE_CHECKING:
    from forge.projections.fold import Source

KERNELS = 2000
GPUS = ("h100", "h200", "rtx4070", "a100", "l4")
OPS = ("rmsnorm", "softmax", "layernorm", "gelu", "rope", "swiglu", "topk", "cumsum", "argmax", "transpose")
SLOT = "op = 'rmsnorm' AND gpu = 'h100' AND dtype = 'bf16'"
QUESTIONS = {
    "history of one kernel": "SELECT seq, recorded_at, candidate_median_ns, speedup, low, high FROM benchmarks"
    " WHERE candidate = (SELECT candidate FROM kernels WHERE kernel_id = ?) ORDER BY seq",
    "geometric mean of every slot": "SELECT op, gpu, dtype, measurements, geomean FROM speedups",
    "leaderboard of a slot": f"SELECT kernel_id, low FROM kernels WHERE {SLOT} AND status = 'active'"
    " ORDER BY low DESC LIMIT 10",
    "regressions": "SELECT kernel_id, slower FROM regressions WHERE slower > 1.05",
}
GOALS_MS = {"regressions": 25}
GOAL_MS = 1


def audit(folder: Path, events: int, rounds: int) -> list[Figure]:
    """Fold `events` benchmarks of 2,000 kernels, and ask each question again and again."""
    from forge.projections.catch_up import FILE, catch_up
    from forge.projections.sqlite_file import connect

    source = long_history(events)
    made_s = seconds(lambda: catch_up(folder / FILE, source))
    size_mib = (folder / FILE).stat().st_size / 2**20
    print(
        f"  {events:,} benchmarks of {KERNELS:,} kernels, folded in {made_s:.0f} s, {size_mib:,.0f} MiB", flush=True
    )
    figures: list[Figure] = []
    with closing(connect(folder / FILE, read_only=True)) as connection:
        names = [name for (name,) in connection.execute("SELECT kernel_id FROM kernels")]
        for question, query in QUESTIONS.items():
            values_ms, found = [], 0
            for _ in range(max(20, rounds * 10)):
                given = (random.choice(names),) if "?" in query else ()
                started = time.perf_counter()
                found = len(connection.execute(query, given).fetchall())
                values_ms.append(1e3 * (time.perf_counter() - started))
            name = f"{question}, {found} rows of {events:,} benchmarks"
            figures.append(limit(name, spread(values_ms), GOALS_MS.get(question, GOAL_MS)))
    return figures


def long_history(events: int) -> "Source":
    """Benchmarks as the ledger would hand them to the folds, without being stored first."""
    from forge.ledger.replay import Line
    from tests.projections.histories import Past, Run, head_of, opened
    from tests.projections.values import task

    history = opened()
    for number in range(KERNELS):
        wanted = task(op=OPS[number % len(OPS)], gpu=GPUS[number // len(OPS) % len(GPUS)])
        ratio = 1.1 + number % 89 / 100
        Run(history, wanted, f"kernel {number}").start().submit().verify().benchmark(ratio=ratio).promote()
    stored = [one for one in history.events if one.event.TYPE == "BenchmarkRecorded"]
    templates = [orjson.loads(one.event.model_dump_json()) for one in stored]

    class Long(Past):
        """The history, and then one benchmark after another."""

        def lines(self, after_seq: int) -> Iterator[Line]:
            yield from super().lines(after_seq)
            first = len(self.events) + 1
            for seq in range(first, self.head.seq + 1):
                event = templates[seq % KERNELS]
                slowed = 1.2 if seq % KERNELS < KERNELS // 3 and seq > self.head.seq - 8 * KERNELS else 1.0
                event["workloads"][0]["candidate"]["median_ns"] = slowed * random.uniform(990, 1010)
                yield Line(seq, "BenchmarkRecorded", "2026-01-02T03:04:05.000000Z", "ci:b", bytes(32), event)

    head = type(head_of(history.events))(len(history.events) + events - KERNELS, bytes(32).hex())
    return Long(history.events, head)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
