"""Workers that one command starts: they end with it, also if it is killed, and leave their runs to the next."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.cli.asking import ask, history, ledger_stands
from tests.cli.test_on_another_machine import box
from tests.cluster.test_killed_heads import requested
from tests.executor.test_remote import processes_below

__all__ = ["box"]
AT_ONCE = Path(__file__).parents[1] / "executor" / "at_once.py"
SERVES = """
import sys
from pathlib import Path
from forge.cli.side_by_side import serve_side_by_side

serve_side_by_side([("--on", "ssh://there")], once=True, home=Path(sys.argv[1]), as_json=True)
"""


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_workers_end_with_a_command_that_is_killed_and_the_next_takes_their_run(
    home: Path, box: Path, tmp_path: Path
) -> None:
    watched = tmp_path / "watched"
    requested(home, watched)
    (box / "forge").write_text(f'#!/bin/sh\nexec {sys.executable} {AT_ONCE} "$@"\n')
    (watched / "hold").touch()
    command = subprocess.Popen([sys.executable, "-c", SERVES, home], stdout=subprocess.DEVNULL)
    until((watched / "calls").exists)
    started = processes_below(command.pid) - {command.pid}
    assert len(started) >= 2, "a worker, and the other machine's Forge"
    os.kill(command.pid, signal.SIGKILL)
    command.wait()
    until(lambda: not any(Path(f"/proc/{one}").exists() for one in started))
    (watched / "hold").unlink()
    assert ask("work", "--once", "--on", "ssh://there", "--home", home, "--json").document["state"] == "promoted"
    assert [one["type"] for one in history(home)].count("CandidateVerified") == 1
    assert ledger_stands(home)
