"""Stops everything a guest runs between releases, so that nobody works before the clock starts or after it stops.

Inputs are written and outputs read while the guest stands still: a thread that waits for its inputs sees them only
once time is being taken, and an answer that isn't there when the clock stops is never there. Distrusts the
guest's processes: they are found by the kernel's own list of PID 1's descendants, and held by pidfd. A timer of the
kernel's may still continue them, so what each thread has run is read again before they are let go.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator

_STOPPED = frozenset((b"T", b"t", b"Z", b"X", b"x"))
_PATIENCE_S = 5.0
LATE_NS = 100_000
"""Processor time that all threads of a guest may show after it was stopped, without a new turn of any: the kernel
calls a thread stopped a moment before it leaves its processor. Whoever runs again takes a turn."""
Ran = dict[str, tuple[int, int]]


class Frozen:
    """The stopped processes of one guest; `thaw` lets them go on."""

    def __init__(self, init_pid: int) -> None:
        self._init_pid = init_pid
        self._held: dict[int, int] = {}
        """Process id -> pidfd."""
        self._ran: Ran = {}
        """Thread -> nanoseconds on a processor and turns there, when everything stood still."""

    def freeze(self) -> bool:
        """Stop every process but PID 1; False if one of them is still running after seconds."""
        deadline_s = time.monotonic() + _PATIENCE_S
        pause_s = 0.0
        while time.monotonic() < deadline_s:
            found = descendants(self._init_pid)
            fresh = found - self._held.keys()
            for pid in fresh:
                self._stop(pid)
            moving = {pid for pid in found if not _stopped(pid)}
            if not fresh and not moving:
                self._ran = _run_times(found)
                if _run_times(found) == self._ran:  # the last of them has left its processor
                    return True
            for pid in moving & self._held.keys():  # continued by another, or by a timer of its own
                _signal(self._held[pid], signal.SIGSTOP)
            time.sleep(pause_s)
            pause_s = min(0.01, pause_s * 2 + 0.0001)
        return False

    def stood_still(self) -> bool:
        """Whether nothing has run since it was stopped; true as well where it never was."""
        return not self._held or only_late(self._ran, _run_times(descendants(self._init_pid)))

    @property
    def standing(self) -> bool:
        """Whether it was stopped and not let go since."""
        return bool(self._held)

    def thaw(self) -> None:
        """Let every stopped process go on."""
        for pidfd in self._held.values():
            _signal(pidfd, signal.SIGCONT)
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
        # a number that went to another process meanwhile isn't PID 1's: that one is left alone
        if _descends(pid, self._init_pid):
            _signal(pidfd, signal.SIGSTOP)
            self._held[pid] = pidfd
        else:
            os.close(pidfd)


def descendants(root: int) -> set[int]:
    """Every process below `root`, by the kernel's own lists."""
    found: set[int] = set()
    waiting = [root]
    while waiting:
        for children in _children(waiting.pop()):
            fresh = children - found
            found |= fresh
            waiting += fresh
    return found


def _children(pid: int) -> Iterator[set[int]]:
    """What each thread of a process has started; `pathlib` would take longer than the kernel does."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:
                yield set(map(int, listing.read().split()))


def _signal(pidfd: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


def _stopped(pid: int) -> bool:
    """Whether every thread of a process stands still, by the kernel's letters."""
    return all(fields[0] in _STOPPED for _, fields in _of_threads(pid, "stat", after=b")"))


def _run_times(pids: set[int]) -> Ran:
    """Nanoseconds on a processor and turns there, of each thread."""
    return {
        thread: (int(ran), int(turns)) for pid in pids for thread, (ran, _, turns) in _of_threads(pid, "schedstat")
    }


def only_late(before: Ran, now: Ran) -> bool:
    """Whether no thread came, and those that were there did no more than leave their processors."""
    if not now.keys() <= before.keys():
        return False
    return all(now[thread][1] == before[thread][1] for thread in now) and (
        sum(now[thread][0] - before[thread][0] for thread in now) <= LATE_NS
    )


def _of_threads(pid: int, name: str, *, after: bytes = b"") -> Iterator[tuple[str, list[bytes]]]:
    """The fields of one file of each thread; what comes up to `after`, a name, is the guest's choice."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/{name}", "rb") as file:
                text = file.read()
                yield thread, (text.rpartition(after)[2] if after else text).split()


def _descends(pid: int, ancestor: int) -> bool:
    """Whether the chain of parents leads there. Anyone may ask that; a namespace's name takes rights over PID 1."""
    while pid > 1 and pid != ancestor:
        try:
            pid = int(_stat(pid)[1])
        except OSError:
            return False
    return pid == ancestor


def _stat(pid: int) -> list[str]:
    """A process's facts from the third on (proc(5)): its state, its parent. The name before is the guest's choice."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].decode().split()
