"""Serves one workspace with one head after another, each killed by SIGKILL a step later than the one before.

    python -m tests.cluster.dying_heads HOME WATCHED PLACE

Run as a program of its own: it forks. Forge's code is as it is; a head only dies at its step.

WATCHED is the folder in which the other machine (`tests/executor/at_once.py`) writes down what it is asked. While it
has a job over which the head dies, a file `hold` stands there, and the next head begins when that job has ended. What
is printed is a list in JSON: each step, and how many events of each type were stored after it.
"""

import json
import os
import re
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NoReturn

from forge.app.phases import phases
from forge.executor.ray import SCHEME, RayConnection
from forge.executor.remote.ssh import SshConnection
from forge.ledger.store import Ledger
from tests.cli.asking import ask
from tests.cluster.answers import AtOnceWorker

Moment = Literal["sent", "at work", "answered"]
ENDS_S = 60.0
"""Time in which a job whose head was killed must end on its machine, in seconds. Forge waits 10 s for guests."""


def die(*_: object, **__: object) -> NoReturn:
    """End as by a power cut."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL can't be survived")


def asking(call: str, moment: Moment) -> Callable[[], None]:
    """Die before a call is sent, when the other machine says that it is at work, or when its answer has come."""

    def around(ask_it: Callable[..., Any]) -> Callable[..., Any]:
        def asked(self: object, sent: bytes, *, progress: Callable[[str], None]) -> Any:
            if json.loads(sent)["call"] != call:
                return ask_it(self, sent, progress=progress)
            if moment == "sent":
                die()
            ask_it(self, sent, progress=die if moment == "at work" else progress)
            die()

        return asked

    def install() -> None:
        for connection in (SshConnection, RayConnection):
            connection.ask = around(connection.ask)  # type: ignore[method-assign]

    return install


def recorded(key: str) -> Callable[[], None]:
    """Die when the ledger has the events with this key, before anything else is written."""

    def install() -> None:
        append = Ledger.append

        def appended(self: Ledger, *events: Any, **options: Any) -> Any:
            done = append(self, *events, **options)
            if re.fullmatch(key, options.get("idempotency_key") or ""):
                die()
            return done

        Ledger.append = appended  # type: ignore[method-assign]

    return install


def before(phase: Callable[..., object]) -> Callable[[], None]:
    """Die when a phase is about to begin."""
    return lambda: setattr(phases, phase.__name__, die)


STEPS: dict[str, Callable[[], None]] = {
    "before the job is sent": asking("examine", "sent"),
    "while the job is judged": asking("examine", "at work"),
    "when the judgement has come": asking("examine", "answered"),
    "when the judgement is recorded": recorded(r"verify:[^:]+:\d+"),
    "between judging and timing": before(phases.benchmark_candidate),
    "before the measurement is sent": asking("measure", "sent"),
    "while it is measured": asking("measure", "at work"),
    "when the samples have come": asking("measure", "answered"),
    "when the benchmark is recorded": recorded(r"bench:[^:]+:\d+"),
    "before the promotion": before(phases.promote_candidate),
    "when the promotion is recorded": recorded(r"promote:.+"),
    "not at all": lambda: None,
}
"""What makes a head die at each step, in the order in which a run comes to them."""


def head(install: Callable[[], None], command: list[str]) -> int:
    """Run a command in a child that dies by itself; return its exit status, or minus the signal."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            RayConnection.__init__.__kwdefaults__["worker"] = AtOnceWorker
            install()
            answer = ask(*command)
            sys.stderr.write(answer.err)
            status = answer.status
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def stored(home: Path) -> Counter[str]:
    """How many events of each type are stored, before anything is put right."""
    with closing(sqlite3.connect(home / "kernel_registry.db")) as connection:
        return Counter(name for (name,) in connection.execute("SELECT type FROM event"))


def wait_for_the_end(watched: Path) -> None:
    """Wait until the machine's process that has the job is gone; raise TimeoutError if it stays."""
    worker = Path("/proc") / (watched / "calls").read_text().split()[-1]
    until = time.monotonic() + ENDS_S
    while worker.exists():
        if time.monotonic() > until:
            raise TimeoutError(f"{worker} still has the job of a head that was killed")
        time.sleep(0.02)


def main() -> None:
    home, watched, place = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    told = []
    if place.startswith(f"{SCHEME}:"):
        import ray  # noqa: F401 (once, and not in each head)
    for step, install in STEPS.items():
        holds = step.startswith("while")
        if holds:
            (watched / "hold").touch()
        status = head(install, ["work", "--once", "--home", str(home), "--on", place])
        if holds:
            wait_for_the_end(watched)
            (watched / "hold").unlink()
        calls = Counter(line.split()[0] for line in (watched / "calls").read_text().splitlines()) if told else {}
        told.append({"step": step, "status": status, "stored": stored(home), "calls": calls})
    print(json.dumps(told))


if __name__ == "__main__":
    main()
