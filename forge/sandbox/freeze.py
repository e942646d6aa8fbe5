"""Stops everything a guest runs between releases, so that nobody works before the clock starts or after it stops.

Inputs are written and outputs read while the guest stands still: a thread that waits for its inputs sees them only
once time is being taken, and an answer that isn't there when the clock stops is never there. Distrusts the
guest's processes: they are found by the kernel's own list of PID 1's descendants, and held by pidfd.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

_STOPPED = frozenset("TtZXx")
_PATIENCE_S = 5.0


class Frozen:
    """The stopped processes of one guest; `thaw` lets them go on."""

    def __init__(self, init_pid: int) -> None:
        self._init_pid = init_pid
        self._held: dict[int, int] = {}
        """Process id -> pidfd."""

    def freeze(self) -> bool:
        """Stop every process but PID 1; False if one of them is still running after seconds."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline_s:
            found = _descendants(self._init_pid)
            fresh = found - self._held.keys()
            for pid in fresh:
                self._stop(pid)
            if not fresh and all(_state(pid) in _STOPPED for pid in found):
                return True
        return False

    def thaw(self) -> None:
        """Let every stopped process go on."""
        for pidfd in self._held.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGCONT)
            os.close(pidfd)
        self._held.clear()

    def close(self) -> None:
        """Let go of the processes without waking them."""
        for pidfd in self._held.values():
            os.close(pidfd)
        self._held.clear()

    def _stop(self, pid: int) -> None:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        # a number that went to another process meanwhile is in another namespace: that one is left alone
        if _namespace(pid) == _namespace(self._init_pid):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGSTOP)
            self._held[pid] = pidfd
        else:
            os.close(pidfd)


def _descendants(root: int) -> set[int]:
    found: set[int] = set()
    waiting = [root]
    while waiting:
        for listing in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                children = {int(pid) for pid in listing.read_text().split()} - found
                found |= children
                waiting += children
    return found


def _state(pid: int) -> str:
    """The kernel's letter for a process's state; X for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _namespace(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None
