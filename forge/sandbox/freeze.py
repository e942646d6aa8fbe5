"""Stops everything a guest runs between releases, so that nobody works before the clock starts or after it stops.

Inputs are written and outputs read while the guest stands still: a thread that waits for its inputs sees them only
once time is being taken, and an answer that isn't there when the clock stops is never there. Distrusts the
guest's processes: they are found by the kernel's own list of PID 1's descendants, and held by pidfd. A timer of the
kernel's may still continue them, so what each thread has run is read again before they are let go.

The kernel calls a thread stopped while it still has to leave its processor, and a busy or a virtual machine may hold
it there, or take the processor away from it, for milliseconds. It stands still once it is off the run queue.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise

_STOPPED = frozenset((b"T", b"t"))
_ENDED = frozenset((b"Z", b"X", b"x"))
"""Threads that never come back to their program, though the kernel may have to clear up after them."""
_PATIENCE_S = 5.0
_TELLING_S = 0.25
"""How long a thread that is off its processor may look as if it waited for one, before we take it that this kernel
doesn't tell us where threads sleep."""
Ran = dict[str, tuple[int, int]]


class Frozen:
    """The stopped processes of one guest; `thaw` lets them go on."""

    def __init__(self, init_pid: int) -> None:
        self._init_pid = init_pid
        self._held: dict[int, int] = {}
        """Process id -> pidfd."""
        self._ran: Ran = {}
        """Thread -> nanoseconds on a processor and turns there, when everything stood still."""
        self._tells = True
        """Whether the kernel says where a stopped thread sleeps; it may not, of a process that can't be traced."""

    def freeze(self) -> bool:
        """Stop every process but PID 1; False if one of them is still running after seconds."""
        began_s = time.monotonic()
        pause_s = 0.0
        while (elapsed_s := time.monotonic() - began_s) < _PATIENCE_S:
            found = descendants(self._init_pid)
            fresh = found - self._held.keys()
            for pid in fresh:
                self._stop(pid)
            moving = {pid for pid in found if not _stopped(pid)}
            if not fresh and not moving:
                self._ran = _run_times(found)
                if self._all_left(found) and not moved(self._ran, _run_times(found)):
                    return True
                self._tells = self._tells and elapsed_s < _TELLING_S
            for pid in moving & self._held.keys():  # continued by another, or by a timer of its own
                _signal(self._held[pid], signal.SIGSTOP)
            time.sleep(pause_s)
            pause_s = min(0.01, pause_s * 2 + 0.0001)
        return False

    def moved(self) -> str:
        """What has run since it was stopped; empty if nothing, and where it never was."""
        return moved(self._ran, _run_times(descendants(self._init_pid))) if self._held else ""

    def _all_left(self, pids: set[int]) -> bool:
        return all(_off_queue(pid) if self._tells else _off_processor(pid) for pid in pids)

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
        for started in children(waiting.pop()):
            fresh = started - found
            found |= fresh
            waiting += fresh
    return found


def children(pid: int) -> Iterator[set[int]]:
    """What each thread of a process has started; `pathlib` would take longer than the kernel does."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:
                yield set(map(int, listing.read().split()))


def _signal(pidfd: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


def _stopped(pid: int) -> bool:
    """Whether every thread of a process stands still or has ended, by the kernel's letters."""
    return all(fields[0] in _STOPPED | _ENDED for _, fields in _of_threads(pid, "stat", after=b")"))


def _off_queue(pid: int) -> bool:
    """Whether each stopped thread sleeps somewhere: the kernel says 0 of one that has a processor to leave."""
    asleep = dict(_of_threads(pid, "wchan"))
    return all(asleep.get(thread) not in (None, [], [b"0"]) for thread in _alive(pid))


def _off_processor(pid: int) -> bool:
    """Whether each stopped thread has left as often as it came, where that is counted; anyone may ask that.

    In this order: one that runs has come once more than it had left, whatever happens between the two readings.
    """
    left = {thread: _times_left(fields) for thread, fields in _of_threads(pid, "status")}
    came = {thread: int(turns) for thread, (_, _, turns) in _of_threads(pid, "schedstat")}
    return all(not came.get(thread) or came[thread] == left.get(thread) for thread in _alive(pid))


def _times_left(status: list[bytes]) -> int:
    """How often a thread gave its processor up, or lost it. Names that a guest gives are too short to be these."""
    named = pairwise(status)
    return sum(int(value) for name, value in named if name.endswith(b"voluntary_ctxt_switches:"))


def _alive(pid: int) -> list[str]:
    return [thread for thread, fields in _of_threads(pid, "stat", after=b")") if fields[0] not in _ENDED]


def _run_times(pids: set[int]) -> Ran:
    """Nanoseconds on a processor and turns there, of each thread that may run again."""
    alive = {thread for pid in pids for thread in _alive(pid)}
    return {
        thread: (int(ran), int(turns))
        for pid in pids
        for thread, (ran, _, turns) in _of_threads(pid, "schedstat")
        if thread in alive
    }


def moved(before: Ran, now: Ran) -> str:
    """The threads that came or have run between two readings, for people."""
    ran = {thread: (spent, turns, *before.get(thread, (0, 0))) for thread, (spent, turns) in now.items()}
    return ", ".join(
        f"{spent - spent_before} ns in {turns - turns_before} turns"
        for spent, turns, spent_before, turns_before in ran.values()
        if (spent, turns) != (spent_before, turns_before)
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
