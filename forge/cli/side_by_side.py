"""Starts workers side by side: one process for each place where jobs can run."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge.app.workspace import Workspace

GAVE_UP = 3
"""Exit status of a worker whose machine is out of reach, or failed several jobs in a row by its own fault."""
MOST_ASKINGS = 3
"""Number of times that a job is asked for at most. One that is lost every time may itself be the cause."""
STDERR = 2
"""File descriptor of this process's stderr."""


def serve_side_by_side(
    places: Sequence[tuple[str, str]], *, once: bool, home: Path | None, as_json: bool, to_stderr: bool = False
) -> list[int]:
    """Start one worker for each place; return their exit statuses. They end with this process, also if it is killed.

    A place is an option of `forge work` with its value. `to_stderr` leaves stdout to the caller.
    """
    command = [sys.executable, "-m", "forge", "work", "--ends-with", str(os.getpid())]
    command += [*(["--once"] if once else []), *(["--json"] if as_json else [])]
    command += ["--home", str(home)] if home else []
    stdout = STDERR if to_stderr else None
    workers = [subprocess.Popen([*command, *place], stdout=stdout) for place in places]
    try:
        return [worker.wait() for worker in workers]
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()


def serve_until_answered(
    workspace: "Workspace", run_ids: Sequence[str], places: Sequence[tuple[str, str]], home: Path
) -> None:
    """Start workers until no run has a lost job, but at most a few times and only while there are places."""
    from forge.app.work.lost_jobs import ask_again
    from forge.cli.output import say

    for asking in range(1, MOST_ASKINGS + 1):
        statuses = serve_side_by_side(places, once=True, home=home, as_json=False, to_stderr=True)
        places = [place for place, status in zip(places, statuses, strict=True) if status != GAVE_UP]
        more = asking < MOST_ASKINGS and places
        if not more or not ask_again(workspace, run_ids, unserved=any(statuses)):
            return
        say(f"jobs were lost with their machines: they are asked for again, on {len(places)} places")
