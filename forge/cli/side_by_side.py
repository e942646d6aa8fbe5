"""Starts workers side by side: one process for each place where jobs can run."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

STDERR = 2
"""File descriptor of this process's stderr."""


def serve_side_by_side(
    places: Sequence[tuple[str, str]], *, once: bool, home: Path | None, as_json: bool, to_stderr: bool = False
) -> int:
    """Start one worker for each place, and end them all with this process; return the largest exit status.

    A place is an option of `forge work` with its value. `to_stderr` leaves stdout to the caller.
    """
    command = [sys.executable, "-m", "forge", "work", *(["--once"] if once else []), *(["--json"] if as_json else [])]
    command += ["--home", str(home)] if home else []
    stdout = STDERR if to_stderr else None
    workers = [subprocess.Popen([*command, *place], stdout=stdout) for place in places]
    try:
        return max(worker.wait() for worker in workers)
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()
