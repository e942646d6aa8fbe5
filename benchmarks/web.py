"""What the server and the tools cost: python benchmarks/web.py [--events N] [--rounds N] [--json].

A workspace with one real kernel gets N events of a long history. `forge serve` runs as a process of its own. Times on
the clock are given beside the server's processor time, since other programs may use the same cores.
"""

import argparse
import asyncio
import http.client
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from figures import Figure, shown, spread
from projections import PAGE, events_of

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the workspace is that of the tests

PAGE_GOAL_MS = {100_000: 50.0, 1_000_000: 100.0}
READS_GOAL, LATENCY_GOAL_MS, START_GOAL_MS, LIST_GOAL_MS = 500.0, 250.0, 1500.0, 1000.0
LIST_GOAL_TOKENS, CHARACTERS_A_TOKEN = 3000, 3
"""Goal for the list of tools. No tokenizer is at hand: three characters a token are few for JSON in English."""
BESIDE = ("p95", "processor_ms", "processor_p95")
"""Figures shown beside a median."""
CLIENTS, CLIENTS_GOAL_MB = 200, 200.0


def built(folder: Path, events: int) -> Path:
    """A workspace with a promoted kernel, and a long history on top of it."""
    from forge.app.workspace import Workspace
    from forge.ledger.batch import Batch
    from forge.projections.publish import publish
    from forge.projections.source import LedgerSource
    from tests.app.prepared import benchmarked_run
    from tests.cli.asking import QUICK_POLICY, ask, create_task

    home = folder / "home"
    assert ask("init", home).status == 0
    (home / "policy.toml").write_text(QUICK_POLICY)
    create_task(home)
    benchmarked_run(home)
    ask("work", "request", "last", "--home", home)
    assert ask("work", "--once", "--home", home).status == 0
    with Workspace.open(home, read_only=True) as workspace:
        ledger_path, registry = workspace.ledger.path, workspace.registry_root
    from forge.app.workspace import new_id, now
    from forge.ledger.store import Ledger

    with Ledger.open(ledger_path, now=now, new_id=new_id) as ledger:
        for batch in events_of(events, after=ledger.head.seq):
            named = [(getattr(event, "run_id", None) or event.stream(), event) for event in batch]
            ledger.append_many(
                [
                    Batch(events=[event for _, event in found], actor="ci:bench", correlation_id=run_id)
                    for run_id, found in itertools.groupby(named, key=lambda one: one[0])
                ]
            )
        publish(registry, lambda: LedgerSource(ledger))
    return home


@contextmanager
def serving(home: Path) -> Iterator[tuple["subprocess.Popen[str]", str, float]]:
    """A server; its process, its address, and the milliseconds until its first answer."""
    command = [sys.executable, "-m", "forge", "serve", "--home", str(home), "--port", "0", "--json", "--work", "0"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["address"].removeprefix("http://")
    get(address, "/api/v1/health")
    took = (time.perf_counter() - began) * 1000
    try:
        yield process, address, took
    finally:
        process.terminate()
        process.communicate()


def get(address: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(address)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, (path, answer.status, body[:300])
    connection.close()
    return body


def processor_s(pid: int) -> float:
    """Processor time of a process's threads so far, in seconds, as the scheduler counts it."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e9


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def one_more(home: Path, number: int) -> float:
    """Record one event; return when."""
    from forge.app.workspace import new_id, now
    from forge.events import HumanDecided
    from forge.ledger.store import Ledger

    event = HumanDecided(subject_stream="x:y", subject=str(number), choice="x", reason="x")
    with Ledger.open(home / "kernel_registry.db", now=now, new_id=new_id) as ledger:
        ledger.append((event,), actor="cli:bench", correlation_id="x:y")
        return time.perf_counter()


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[18]


def page_figures(
    home: Path, process: "subprocess.Popen[str]", address: str, events: int, rounds: int
) -> list[Figure]:
    kernel = json.loads(get(address, "/api/v1/kernels?limit=200"))["items"][-1]
    paths = ["/", "/tasks", f"/tasks/{kernel['task_id']}", f"/runs/{kernel['run_id']}", "/leaderboard", "/compare"]
    paths += [f"/candidates/{kernel['candidate']}", f"/kernels/{kernel['kernel_id']}", "/experiments", "/sessions"]
    paths += ["/machines", "/ledger", "/ledger/5", "/help", "/recommend?model=llama3.1-8b"]
    own = json.loads(get(address, "/api/v1/kernels?limit=200&op=fused_add_rmsnorm&gpu=cpu"))["items"][-1]
    real = {"task_id": own["task_id"], "run_id": own["run_id"], "candidate": own["candidate"]}
    paths = [
        path.replace(kernel["task_id"], real["task_id"])
        .replace(kernel["run_id"], real["run_id"])
        .replace(kernel["candidate"], real["candidate"])
        .replace(kernel["kernel_id"], own["kernel_id"])
        for path in paths
    ]
    goal_ms = PAGE_GOAL_MS.get(events)
    figures: list[Figure] = []
    for path in paths:
        get(address, path)
        fresh, used = list[float](), list[float]()
        for number in range(rounds):
            one_more(home, number)
            get(address, "/api/v1/state")  # the history is brought up to the new event once, for every page
            before, began = processor_s(process.pid), time.perf_counter()
            get(address, path)
            fresh.append((time.perf_counter() - began) * 1000)
            used.append((processor_s(process.pid) - before) * 1000)
        figure: Figure = {
            "name": f"page {path.partition('?')[0][:40]}",
            **spread(fresh),
            "unit": "ms",
            "p95": p95(fresh),
        }
        figure |= {"processor_ms": statistics.median(used), "processor_p95": p95(used)}
        if goal_ms is not None:
            figure |= {"goal": f"p95 <= {goal_ms:g} ms", "reached": figure["p95"] <= goal_ms}
        figures.append(figure)
    size = len(get(address, "/"))
    figures.append(
        {"name": "overview without its drawing", "low": size, "median": size, "high": size, "unit": "bytes"}
    )
    return figures


def reads(process: "subprocess.Popen[str]", address: str, seconds: float) -> list[Figure]:
    """API reads in a closed loop of four clients, each on its own connection."""
    listed = json.loads(get(address, "/api/v1/runs?limit=200"))["items"]
    paths = [f"/api/v1/tasks?limit={n}" for n in range(1, 100)] + [f"/api/v1/ledger/events/{n}" for n in range(1, 8)]
    paths += [f"/api/v1/runs?task={one['task_id']}" for one in listed[:60]]
    counts, until = [0] * 4, time.perf_counter() + seconds

    def ask(place: int) -> None:
        connection = http.client.HTTPConnection(address)
        number = place * 37
        while time.perf_counter() < until:
            connection.request("GET", paths[number % len(paths)])
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            number += 1
            counts[place] += 1
        connection.close()

    before, began = processor_s(process.pid), time.perf_counter()
    threads = [threading.Thread(target=ask, args=(place,)) for place in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    wall, used, count = time.perf_counter() - began, processor_s(process.pid) - before, sum(counts)
    rate, own = count / wall, count / used
    same = {"low": rate, "median": rate, "high": rate}
    return [
        {"name": "API reads", **same, "unit": "per s", "goal": f">= {READS_GOAL:g}", "reached": rate >= READS_GOAL},
        {"name": "API reads for a processor second", "low": own, "median": own, "high": own, "unit": "per s"},
    ]


async def follow(address: str, seen: list[tuple[str, float]], ready: asyncio.Event) -> None:
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await writer.drain()
    while line := await reader.readline():
        if line.startswith(b": heartbeat"):
            ready.set()
        if line.startswith(b"id: "):
            seen.append((line.decode(), time.perf_counter()))


def live(home: Path, process: "subprocess.Popen[str]", address: str, rounds: int) -> list[Figure]:
    """How late an event reaches a client, with one client and with two hundred, and what these cost."""

    async def measured(clients: int) -> tuple[list[float], float]:
        seen: list[list[tuple[str, float]]] = [[] for _ in range(clients)]
        before = resident_mb(process.pid)
        ready = [asyncio.Event() for _ in range(clients)]
        tasks = [asyncio.create_task(follow(address, one, event)) for one, event in zip(seen, ready, strict=True)]
        await asyncio.gather(*(event.wait() for event in ready))
        late: list[float] = []
        for number in range(rounds):
            for one in seen:
                one.clear()
            at = await asyncio.to_thread(one_more, home, 10_000 * clients + number)
            while not all(seen):
                await asyncio.sleep(0.002)
            late += [(one[0][1] - at) * 1000 for one in seen]
        cost = resident_mb(process.pid) - before
        for task in tasks:
            task.cancel()
        return late, cost

    figures: list[Figure] = []
    for clients in (1, CLIENTS):
        late, cost = asyncio.run(measured(clients))
        name = f"an event reaches {clients} live client{'s' if clients > 1 else ''}"
        goal = {"goal": f"p95 <= {LATENCY_GOAL_MS:g} ms", "reached": p95(late) <= LATENCY_GOAL_MS}
        figures.append({"name": name, **spread(late), "unit": "ms", "p95": p95(late), **goal})
    goal = {"goal": f"<= {CLIENTS_GOAL_MB:g} MB", "reached": cost <= CLIENTS_GOAL_MB}
    figures.append(
        {"name": f"{CLIENTS} live clients", "low": cost, "median": cost, "high": cost, "unit": "MB", **goal}
    )
    return figures


def tools(home: Path, rounds: int) -> list[Figure]:
    """How long `forge mcp` takes, cold, until it has listed its tools, and how long the list is."""
    asked: list[dict[str, Any]] = [  # Any: JSON-RPC
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "benchmark", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    text = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    taken, used = list[float](), list[float]()
    listed = ""
    for _ in range(rounds):
        began = time.perf_counter()
        command = [sys.executable, "-m", "forge", "mcp", "--home", str(home)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(text)
            process.stdin.flush()
            for line in process.stdout:
                if json.loads(line).get("id") == 2:
                    taken.append((time.perf_counter() - began) * 1000)
                    used.append(processor_s(process.pid) * 1000)
                    listed = json.dumps(json.loads(line)["result"]["tools"], separators=(",", ":"))
                    break
            process.stdin.close()
            process.terminate()
    size = len(listed) / CHARACTERS_A_TOKEN
    few = {"goal": f"<= {LIST_GOAL_TOKENS}", "reached": size <= LIST_GOAL_TOKENS}
    goal = {"goal": f"<= {LIST_GOAL_MS:g} ms", "reached": statistics.median(taken) <= LIST_GOAL_MS}
    return [
        {"name": "forge mcp, cold, until its tools are listed", **spread(taken), "unit": "ms", **goal},
        {"name": "forge mcp, cold: processor", **spread(used), "unit": "ms"},
        {"name": "list of tools, at most", "low": size, "median": size, "high": size, "unit": "tokens", **few},
    ]


def started(home: Path, rounds: int) -> list[Figure]:
    taken, used = [], []
    for _ in range(rounds):
        with serving(home) as (process, _, took):
            taken.append(took)
            used.append(processor_s(process.pid) * 1000)
    goal = {"goal": f"<= {START_GOAL_MS:g} ms", "reached": statistics.median(taken) <= START_GOAL_MS}
    return [
        {"name": "forge serve, until its first answer", **spread(taken), "unit": "ms", **goal},
        {"name": "forge serve, until its first answer: processor", **spread(used), "unit": "ms"},
    ]


def main() -> None:
    options = argparse.ArgumentParser(description="What the server and the tools cost.")
    options.add_argument("--events", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    assert PAGE, "the history's own page size"
    folder = Path(tempfile.mkdtemp(prefix="forge-web-"))
    try:
        home = built(folder, chosen.events)
        figures = tools(home, max(5, chosen.rounds // 4)) + started(home, max(5, chosen.rounds // 4))
        with serving(home) as (process, address, _):
            steps: list[Callable[[], list[Figure]]] = [
                lambda: page_figures(home, process, address, chosen.events, chosen.rounds),
                lambda: reads(process, address, 5.0),
                lambda: live(home, process, address, chosen.rounds),
            ]
            for step in steps:
                figures += step()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    load = round(os.getloadavg()[0], 1)
    if chosen.json:
        print(json.dumps({"events": chosen.events, "load": load, "figures": figures}, indent=1))
        return
    print(f"{chosen.events:,} events, load {load}")
    for one in figures:
        more = "".join(
            f"  {name} {one[name]:.1f}" for name in ("p95", "processor_ms", "processor_p95") if name in one
        )
        print(shown(one) + more)


if __name__ == "__main__":
    main()
