"""Runs commands on copies of a workspace, each killed at another durable operation.

Run as a program of its own: it forks, and the children die by SIGKILL, as from a power cut, before or after their
n-th fsync, rename, new folder or COMMIT. Only the operating system's side is counted; Forge's code is as it is.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forge.app.phases import phases
from forge.app.workspace import Workspace
from forge.pipeline import benchmark
from tests.app.prepared import gathered, samples
from tests.cli.asking import ask

DURABLE = ("fsync", "rename", "replace", "mkdir")


class Countdown:
    """Kills this process at the n-th operation; 0 only counts."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.count = 0

    def tick(self) -> None:
        self.count += 1
        if self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.tick()
            done = operation(*arguments, **options)
            self.tick()
            return done

        return counted


def install(countdown: Countdown) -> None:
    """Count what makes things last: system calls, and SQLite's COMMIT."""
    for name in DURABLE:
        setattr(os, name, countdown.around(getattr(os, name)))

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql != "COMMIT":
                return super().execute(sql, *parameters)
            countdown.tick()
            cursor = super().execute(sql, *parameters)
            countdown.tick()
            return cursor

    connect = sqlite3.connect

    def counted_connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, **{"factory": Connection, **options})

    sqlite3.connect = counted_connect  # type: ignore[assignment]


def conclude(home: Path, *, wobble: float) -> None:
    """The end of `bench`, after the clock: baselines, claims, the benchmark, what the claims were worth."""
    with Workspace.open(home) as workspace:
        run = workspace.find_run("last")
        measured = benchmark.Measured(
            samples=samples(wobble=wobble),
            floor_ns=20_000.0,
            claims={"speedup": 1.5 + wobble, "candidate_latency_us": 9.0},
            confirmation=samples(candidate_ns=51_000, wobble=wobble),
        )
        key = f"bench:{run.run_id}:{run.attempts.benchmark + 1}"
        phases._record_times(workspace, run, gathered(workspace, run.run_id), measured, key)


def work(home: Path, command: list[str], expected: int) -> None:
    if command == ["conclude"]:
        conclude(home, wobble=0.01)
    else:
        answer = ask(*command, "--home", home)
        assert answer.status == expected, answer


def attempt(home: Path, command: list[str], fatal: int, *, expected: int) -> int:
    """Run the command in a child that dies at operation `fatal`; how many it counted, -1 if it was killed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            countdown = Countdown(fatal)
            install(countdown)
            work(home, command, expected)
            os.write(write, str(countdown.count).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with open(read, "rb") as stream:
        said = stream.read()
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return -1
    assert status == 0, f"the command failed before it was killed: {status}"
    return int(said)


def died(prepared: Path, into: Path, command: list[str], fatal: int, expected: int) -> bool:
    """Whether the command died at operation `fatal` in a copy of its own; the copy of one that didn't is removed.

    One run may need fewer operations than another: ids are drawn at random, and two digests that begin alike share
    a folder, which is made once.
    """
    home = Path(shutil.copytree(prepared, into / str(fatal), symlinks=True))
    counted = attempt(home, command, fatal, expected=expected)
    if counted == -1:
        return True
    assert counted < fatal, "the command did as many operations and wasn't killed"
    shutil.rmtree(home)
    return False


def main() -> None:
    prepared, into, most, expected, *command = sys.argv[1:]
    if command[:2] == ["task", "create"]:
        import torch  # noqa: F401  # once, and not in each child
    whole = Path(shutil.copytree(prepared, Path(into) / "whole", symlinks=True))
    count = attempt(whole, command, 0, expected=int(expected))
    shutil.rmtree(whole, ignore_errors=True)
    step = max(1, -(-count // int(most)))
    killed = [n for n in range(1, count + 1, step) if died(Path(prepared), Path(into), command, n, int(expected))]
    print(json.dumps({"count": count, "killed": killed}))


if __name__ == "__main__":
    main()
