"""A new author's whole session, typed into a real terminal: new, wrong, read, mended, promoted, looked up."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from tests.app.prepared import benchmarked, samples
from tests.cli.asking import QUICK_POLICY

REFERENCE = """import torch


def row_sums(x):
    total = torch.zeros(x.shape[0])
    for some in x.split(16, dim=1):
        total = total + some.sum(1)
    return total


def get_inputs():
    return [torch.randn(1024, 512)]
"""
"""Reference with tens of eager calls, so that a single call is several times as fast on any machine.

The operand is large enough for a release of the fast kernel to take a millisecond: far longer than the path varies.
"""
POLICY = QUICK_POLICY + "confirmation = false\n"
WRONG = "import torch\n\n\ndef kernel(x):\n    return x.smu(1)\n"
RIGHT = "import torch\n\n\ndef kernel(x):\n    return x.sum(1)\n"
DONE = re.compile(r"DONE(\d+)\r\n")
MOST_S = 1200
"""Longest time of a command, in seconds: far more than one takes on a busy machine."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Shell:
    """A shell in a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "PS1": "", "TERM": "xterm", "FORGE": f"{sys.executable} -m forge"}
        for name in ("FORGE_HOME", "COLUMNS", "LINES", "NO_COLOR"):
            environment.pop(name, None)
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.typed('stty -echo; forge() { $FORGE "$@"; }')

    def resize(self, columns: int) -> None:
        """Set the number of columns of the terminal."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))

    def typed(self, command: str) -> tuple[int, str]:
        """Type a command; return its exit status and what the terminal showed."""
        os.write(self._ours, f"{command}; echo DONE$?\n".encode())
        shown, limit = b"", time.monotonic() + MOST_S
        while (found := DONE.search(shown.decode(errors="replace"))) is None:
            assert time.monotonic() < limit, shown[-2000:]
            if select.select([self._ours], [], [], 1)[0]:
                shown += os.read(self._ours, 65536)
        return int(found[1]), shown.decode(errors="replace")[: found.start()].replace("\r\n", "\n")

    def close(self) -> None:
        """End the shell."""
        os.write(self._ours, b"exit\n")
        self._shell.wait(timeout=120)
        os.close(self._ours)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    opened = Shell(tmp_path)
    yield opened
    opened.close()


def lines(shown: str) -> list[str]:
    """Return the lines that stay on the screen, without colours and without redrawn progress."""
    return [CONTROL.sub("", line.rpartition("\r\x1b[2K")[2]) for line in shown.splitlines()]


def promoted_by_made_up_samples(shell: Shell, task: str, home: Path) -> tuple[int, str]:
    """Promote in a new run, which inherits the acceptance, with samples that no load of the machine spoils."""
    status, shown = shell.typed(f"forge run open {task} && forge submit last mine && forge verify last --quiet")
    assert status == 0, shown
    with Workspace.open(home) as workspace:
        benchmarked(workspace, workspace.find_run("last").run_id, taken=samples(wobble=0.01))
    status, promoted = shell.typed("forge promote last")
    return status, shown + promoted


@pytest.mark.slow(first=True)
@pytest.mark.usefixtures("walls")
def test_a_new_author_comes_from_an_empty_folder_to_a_promoted_kernel(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(REFERENCE)
    shell.resize(80)
    assert shell.typed("forge init kernels && cd kernels")[0] == 0
    (tmp_path / "kernels" / "policy.toml").write_text(POLICY)
    status, shown = shell.typed(
        "forge task create --reference ../sums.py --language torch --gpu cpu --dtype fp32 --yes"
    )
    assert status == 0, shown
    task = re.search(r"\b(torch_own_\w+)", shown)
    assert task, shown
    assert shell.typed(f"forge new {task[1]} mine")[0] == 0
    kernel = tmp_path / "kernels" / "mine" / "kernel.py"
    assert {path.name for path in kernel.parent.iterdir()} >= {"kernel.py", "metadata.json"}

    kernel.write_text(WRONG)
    status, shown = shell.typed(f"forge pipeline {task[1]} mine")
    assert status == 1
    assert "\x1b[31mrejected\x1b[0m" in shown  # red, as no acceptance is
    assert "kernel.py:5" in shown
    assert "has no attribute 'smu'" in shown
    assert all(len(line) <= 80 or len(line.split()) <= 2 for line in lines(shown))

    kernel.write_text(RIGHT)
    status, shown = shell.typed(f"forge pipeline {task[1]} mine --quiet")
    if "inconclusive" in shown:
        status, shown = promoted_by_made_up_samples(shell, task[1], tmp_path / "kernels")
    assert status == 0, shown
    assert "\x1b[32maccepted\x1b[0m" in shown

    for columns in (80, 200):
        shell.resize(columns)
        status, shown = shell.typed("forge run list; forge kernel list; forge run show last")
        assert status == 0, shown
        assert "\x1b[32mpromoted\x1b[0m" in shown
        assert len(re.findall(r"\btorch_own_\w+_v1\b", shown)) >= 1
    status, shown = shell.typed("forge ledger verify --full")
    assert (status, "\x1b[32mok\x1b[0m" in shown) == (0, True), shown
