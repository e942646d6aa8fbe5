"""Readers under a publisher that never rests: how many answers were given, and how many were none or torn.

Every publication differs from the one before in each kernel's entry point and event numbers, which name the
publication: an answer that mixes two is seen by itself. Half of the readers refresh one registry that they opened,
half open it anew at each turn.
"""

import multiprocessing
import threading
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from published import kernels, publish

SHAPE = {"batch": 1, "hidden_size": 4096}


@dataclass
class Counts:
    """What the readers of one kind saw."""

    answers: int = 0
    refreshed: int = 0
    torn: int = 0
    failed: int = 0


def ask(directory: Path, stop: "Synchronized[int]", counts: Counts, *, anew: bool) -> None:
    """Ask until `stop`."""
    from forge.errors import ForgeError
    from forge.lookup import Registry

    registry = Registry.open(directory)
    while not stop.value:
        try:
            registry = Registry.open(directory) if anew else registry
            counts.refreshed += registry.refresh()
            for op in ("operation_3", "operation_7"):
                found = registry.lookup(op=op, gpu="h200", dtype="bf16", shape=SHAPE)
                counts.answers += 1
                if found.kernel is None or found.evidence is None:
                    counts.failed += 1
                elif found.kernel.entry_point != f"publication_{found.evidence.promoted_seq}":
                    counts.torn += 1
            counts.failed += not registry.health().ok
        except ForgeError:
            counts.failed += 1


def ask_in_a_process(directory: Path, stop: "Synchronized[int]", told: object, anew: bool) -> None:
    counts = Counts()
    ask(directory, stop, counts, anew=anew)
    told.put(counts)  # type: ignore[attr-defined]  # a queue of multiprocessing


def swap(directory: Path, swaps: int, *, threads: int = 2, processes: int = 2) -> tuple[Counts, Counts]:
    """Publish `swaps` times under that many readers; what threads and what processes saw."""
    listed = kernels(100)

    def publish_nth(number: int) -> None:
        own = {"entry_point": f"publication_{number}", "promoted_seq": number, "verified_seq": number}
        publish(directory, [{**one, **own} for one in listed], seq=number)

    publish_nth(0)
    context = multiprocessing.get_context("fork")
    stop, told = context.Value("i", 0), context.Queue()
    own = [Counts() for _ in range(threads)]
    forked = [
        context.Process(target=ask_in_a_process, args=(directory, stop, told, bool(n % 2))) for n in range(processes)
    ]
    threaded = [
        threading.Thread(target=ask, args=(directory, stop, counts), kwargs={"anew": bool(n % 2)})
        for n, counts in enumerate(own)
    ]
    readers: list[BaseProcess | threading.Thread] = [*forked, *threaded]
    for reader in readers:
        reader.start()
    for number in range(1, swaps + 1):
        publish_nth(number)
    stop.value = 1
    others = [told.get(timeout=60) for _ in forked]
    for reader in readers:
        reader.join(60)
    return total(own), total(others)


def total(counted: list[Counts]) -> Counts:
    return Counts(
        answers=sum(one.answers for one in counted),
        refreshed=sum(one.refreshed for one in counted),
        torn=sum(one.torn for one in counted),
        failed=sum(one.failed for one in counted),
    )
