"""What reading the registry costs, beside a list of kernels that is parsed at each request.

    python benchmarks/read_side.py [--rounds N] [--swaps N] [--json | --into docs/performance.json]

Each round measures every figure once, on the same published kernels, in processor time: the files are cached, so
nothing is waited for, and other work on the machine counts only as far as it slows the processor. `a list per
request` opens and parses one JSON file of all kernels and walks through it, as the reader of a registry without a
read side does. Swaps: see swaps.py. With `--into`, the figures are kept for benchmarks/page.py.
"""

import argparse
import importlib.util
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from figures import Figure, shown, spread
from published import kernels, publish, publish_list
from swaps import swap

ROOT = Path(__file__).resolve().parent.parent
SHAPE = {"batch": 1, "hidden_size": 4096}
SIZES = (1000, 10_000)
CALLS = 20_000
BATCHES = 20
STARTS = 5
UNASKED = [{"batch": rows, "hidden_size": width} for rows in range(1, 33) for width in range(1025, 4095, 97)]
IMPORT, EXACT = "import forge.lookup, above a bare interpreter", "exact"
NEAREST, FIRST = "nearest, at a shape not asked before", "first question to a slot"
AGAIN, NOTHING_NEW = "nearest, asked before", "refresh, nothing new"
RECOMMENDED, MODEL = "recommendation for one model, warm", "llama3.1-8b"
GOALS = {
    IMPORT: 2000.0,
    "open, 1,000 kernels": 15_000.0,
    "open, 10,000 kernels": 100_000.0,
    EXACT: 1.0,
    NEAREST: 20.0,
    RECOMMENDED: 50_000.0,
}
"""At most so many microseconds."""
Note = Callable[[str, float], None]


def microseconds(function: Callable[[], object], calls: int = 1) -> float:
    """A call's processor time, the loop's own included; of many calls, the median of batches."""
    batches = BATCHES if calls >= BATCHES else 1
    taken = []
    for _ in range(batches):
        started = time.process_time()
        for _ in range(calls // batches):
            function()
        taken.append((time.process_time() - started) / (calls // batches) * 1e6)
    return statistics.median(taken)


def ask(directory: Path, note: Note) -> None:
    """Open a registry and ask it."""
    from forge.lookup import Policy, Registry

    registry, nearest = Registry.open(directory), Policy(shape="nearest")
    unasked = iter(UNASKED)

    def exact() -> str:
        return registry.lookup(op="operation_3", gpu="h200", dtype="bf16", shape=SHAPE).match

    def near() -> str:
        return registry.lookup(op="operation_3", gpu="h200", dtype="bf16", shape=next(unasked), policy=nearest).match

    def near_again() -> str:
        return registry.lookup(op="operation_3", gpu="h200", dtype="bf16", shape=UNASKED[0], policy=nearest).match

    note(FIRST, microseconds(exact))
    note(EXACT, microseconds(exact, CALLS))
    note(NEAREST, microseconds(near, len(UNASKED) - 1))
    note(AGAIN, microseconds(near_again, CALLS))
    note(NOTHING_NEW, microseconds(registry.refresh, 1000))
    assert (exact(), near(), near_again()) == ("exact", "nearest", "nearest")


def a_list_per_request(path: Path) -> object:
    """The entry of a slot, from the file."""
    slot = ("operation_3", "h200", "bf16", SHAPE)
    for entry in json.loads(path.read_bytes())["kernels"]:
        if (entry["op"], entry["target_gpu"], entry["dtype"], entry["shape"]) == slot:
            return entry
    raise LookupError("the list has no such kernel")


def import_cost() -> float:
    """Microseconds that the import takes above a bare interpreter, the median of pairs of starts."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

    def start(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e6

    above = []
    for _ in range(STARTS):
        taken = {code: start(code) for code in random.sample(["pass", "import forge.lookup"], 2)}
        above.append(taken["import forge.lookup"] - taken["pass"])
    return statistics.median(above)


def recommend(note: Note) -> None:
    """Plans for one model with the shipped registry's kernels, where there is an engine."""
    if importlib.util.find_spec("forge.recommend") is None:
        return
    from forge.recommend import Recommender, parse_request

    engine = Recommender(profiles=(), registry_path=ROOT / "kernel_registry")
    request = parse_request({"model": MODEL})
    engine.recommend(request)
    note(RECOMMENDED, microseconds(lambda: engine.recommend(request)))


def round_of_figures(folder: Path, note: Note) -> None:
    from forge.lookup import Registry

    note(IMPORT, import_cost())
    for size in SIZES:
        directory = folder / str(size)
        note(f"open, {size:,} kernels", microseconds(partial(Registry.open, directory)))
        listed = microseconds(partial(a_list_per_request, directory / "verified_kernels.json"))
        note(f"a list per request, {size:,} kernels", listed)
    ask(folder / str(SIZES[0]), note)
    recommend(note)


def measure(rounds: int, swaps: int) -> dict[str, object]:
    """All figures, and what the swaps came to."""
    samples: dict[str, list[float]] = {}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in SIZES:
            listed = kernels(size)
            publish(folder / str(size), listed)
            publish_list(folder / str(size) / "verified_kernels.json", listed)
        round_of_figures(folder, lambda _, __: None)  # warms up
        for _ in range(rounds):
            round_of_figures(folder, lambda name, value: samples.setdefault(name, []).append(value))
        threads, processes = swap(folder / "swapped", swaps)
    listed_us, exact_us = samples[f"a list per request, {SIZES[0]:,} kernels"], samples[EXACT]
    ratio = spread([listed / exact for listed, exact in zip(listed_us, exact_us, strict=True)])
    found = [figure(name, values) for name, values in samples.items()]
    found.append({"name": f"a list per request / exact, {SIZES[0]:,} kernels", **ratio, "unit": "x"})
    under = {"swaps": swaps, "threads": vars(threads), "processes": vars(processes)}
    return {"figures": found, "rounds": rounds, "load": [load, os.getloadavg()[0]], "under_swaps": under}


def figure(name: str, values_us: list[float]) -> Figure:
    """Microseconds, or milliseconds where those are many."""
    limit_us = GOALS.get(name)
    unit, scale = ("ms", 1000) if (limit_us or max(values_us)) >= 1000 else ("us", 1)
    found: Figure = {"name": name, **spread([value / scale for value in values_us]), "unit": unit}
    if limit_us is not None:
        reached = found["median"] * scale <= limit_us
        found |= {"goal": f"<= {limit_us / scale:g} {unit}", "reached": reached}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--swaps", type=int, default=1000)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--into", type=Path, help="keep the figures in this JSON file")
    options = parser.parse_args()
    result = measure(options.rounds, options.swaps)
    if options.into is not None:
        kept = json.loads(options.into.read_text())
        options.into.write_text(json.dumps({**kept, "read_side": result}, indent=1) + "\n")
    elif options.json:
        print(json.dumps(result, indent=1))
        return
    for one in result["figures"]:  # type: ignore[attr-defined]  # JSON
        print(shown(one))
    print(f"  {result['under_swaps']}")


if __name__ == "__main__":
    main()
