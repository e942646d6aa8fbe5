"""Eight writers at once, forked from one process so that nothing but appending is measured.

Run as a program of its own: prints how long each append took to come back, and what went wrong.
"""

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from forge.ledger.ids import uuid7
from forge.ledger.store import Ledger

from .making import duplicated


def write(path: Path, name: str, count: int, begin_ns: int) -> dict[str, object]:
    waits_ms, errors = [], []
    with Ledger.open(
        path, now=lambda: datetime.now(UTC), new_id=lambda: uuid7(time.time_ns() // 10**6, os.urandom(10))
    ) as ledger:
        while time.monotonic_ns() < begin_ns:
            time.sleep(0.001)
        for number in range(count):
            began = time.perf_counter()
            try:
                ledger.append(
                    [duplicated(number, candidate=name if number % 2 else "shared")],
                    actor=f"ci:{name}",
                    correlation_id=name,
                    idempotency_key=f"{name}:{number}",
                )
            except Exception as error:
                errors.append(repr(error))
            waits_ms.append(1000 * (time.perf_counter() - began))
    return {"waits_ms": waits_ms, "errors": errors}


def main() -> None:
    path, writers, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    begin_ns = time.monotonic_ns() + 300_000_000
    pipes = []
    for place in range(writers):
        read, out = os.pipe()
        if os.fork() == 0:
            try:
                os.close(read)
                with os.fdopen(out, "w") as stream:
                    json.dump(write(path, f"w{place}", count, begin_ns), stream)
            finally:
                os._exit(0)
        os.close(out)
        pipes.append(read)
    answers = []
    for read in pipes:
        with os.fdopen(read) as stream:
            answers.append(json.load(stream))
    whole_ms = (time.monotonic_ns() - begin_ns) / 1e6
    waits = sorted(wait for one in answers for wait in one["waits_ms"])
    print(
        json.dumps(
            {
                "errors": [error for one in answers for error in one["errors"]],
                "p50_ms": waits[len(waits) // 2],
                "p99_ms": waits[len(waits) * 99 // 100],
                "worst_ms": waits[-1],
                "worst_ms_of_each": [max(one["waits_ms"]) for one in answers],
                "whole_ms": whole_ms,
            }
        )
    )


if __name__ == "__main__":
    main()
