"""Stops everything a guest runs between releases, so that no work is done before the clock starts or after it stops.

Inputs are written and outputs read while the guest is stopped. A thread that waits for its inputs sees them only
after the clock has started. An answer that isn't there when the clock stops never counts.

Distrusts the guest's processes: they are found in the kernel's own list of PID 1's descendants, and held by pidfd. A
timer of the kernel may still continue them. So what each thread has run is read again before they are continued.

The kernel calls a thread stopped while it still has to leave its processor. A busy or a virtual machine may hold it
there, or take the processor away from it, for milliseconds. A thread is still only when it is off the run queue.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise

_STOPPED = frozenset((b"T", b"t"))
_ENDED = frozenset((b"Z", b"X", b"x"))
"""States of threads that never return to their program, though the kernel may still have to clean up after them."""
_PATIENCE_S = 5.0
"""Seconds after which stopping a guest fails."""
_QUEUE_INFO_S = 0.25
"""Seconds for which a thread off its processor may seem to wait for one. After that this kernel is assumed not to
show where threads sleep."""
Ran = dict[str, tuple[int, int]]
"""Run times by thread: nanoseconds on a processor, and number of turns there."""


class FrozenGuest:
    """The stopped processes of one guest; `thaw` continues them."""

    def __init__(self, init_pid: int) -> None:
        self._init_pid = init_pid
        self._held: dict[int, int] = {}
        """Pidfd of each stopped process, by process id."""
        self._ran: Ran = {}
        """Run times of all threads when everything was still."""
        self._tells = True
        """Whether the kernel shows where a stopped thread sleeps. It may not for a process that can't be traced."""

    def freeze(self) -> bool:
        """Stop every process but PID 1; return False if one still runs after seconds."""
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
                self._tells = self._tells and elapsed_s < _QUEUE_INFO_S
            for pid in moving & self._held.keys():  # another process or its own timer continued it
                _signal(self._held[pid], signal.SIGSTOP)
            time.sleep(pause_s)
            pause_s = min(0.01, pause_s * 2 + 0.0001)
        return False

    def moved(self) -> str:
        """Return which threads have run since they were stopped, as text; empty if none."""
        return moved(self._ran, _run_times(descendants(self._init_pid))) if self._held else ""

    def _all_left(self, pids: set[int]) -> bool:
        return all(_off_queue(pid) if self._tells else _off_processor(pid) for pid in pids)

    @property
    def standing(self) -> bool:
        """Whether the guest was stopped and not continued since."""
        return bool(self._held)

    def thaw(self) -> None:
        """Continue every stopped process."""
        for pidfd in self._held.values():
            _signal(pidfd, signal.SIGCONT)
            os.close(pidfd)
        self._held.clear()

    def close(self) -> None:
        """Release the processes without continuing them."""
        for pidfd in self._held.values():
            os.close(pidfd)
        self._held.clear()

    def _stop(self, pid: int) -> None:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        # if the number now belongs to a process outside the guest, that process is left alone
        if _descends(pid, self._init_pid):
            _signal(pidfd, signal.SIGSTOP)
            self._held[pid] = pidfd
        else:
            os.close(pidfd)


def descendants(root: int) -> set[int]:
    """Return every process below `root`, by the kernel's own lists."""
    found: set[int] = set()
    waiting = [root]
    while waiting:
        for started in children(waiting.pop()):
            fresh = started - found
            found |= fresh
            waiting += fresh
    return found


def children(pid: int) -> Iterator[set[int]]:
    """Yield what each thread of a process has started; `pathlib` would take longer than the kernel does."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:
                yield set(map(int, listing.read().split()))


def _signal(pidfd: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


def _stopped(pid: int) -> bool:
    """Return whether every thread of a process is stopped or has ended, by the kernel's state letters."""
    return all(fields[0] in _STOPPED | _ENDED for _, fields in _of_threads(pid, "stat", after=b")"))


def _off_queue(pid: int) -> bool:
    """Return whether each stopped thread sleeps; the kernel reports 0 for one that must still leave its processor."""
    asleep = dict(_of_threads(pid, "wchan"))
    return all(asleep.get(thread) not in (None, [], [b"0"]) for thread in _alive(pid))


def _off_processor(pid: int) -> bool:
    """Return whether each stopped thread has left its processor as often as it came, if that is counted.

    Any user may read these counts. The order of the two readings matters: a running thread has come once more than it
    has left, whatever happens between the readings.
    """
    left = {thread: _times_left(fields) for thread, fields in _of_threads(pid, "status")}
    came = {thread: int(turns) for thread, (_, _, turns) in _of_threads(pid, "schedstat")}
    return all(not came.get(thread) or came[thread] == left.get(thread) for thread in _alive(pid))


def _times_left(status: list[bytes]) -> int:
    """Return how often a thread gave up or lost its processor.

    A guest's thread names are too short to imitate these fields.
    """
    named = pairwise(status)
    return sum(int(value) for name, value in named if name.endswith(b"voluntary_ctxt_switches:"))


def _alive(pid: int) -> list[str]:
    return [thread for thread, fields in _of_threads(pid, "stat", after=b")") if fields[0] not in _ENDED]


def _run_times(pids: set[int]) -> Ran:
    """Return nanoseconds on a processor and number of turns there, for each thread that may run again."""
    alive = {thread for pid in pids for thread in _alive(pid)}
    return {
        thread: (int(ran), int(turns))
        for pid in pids
        for thread, (ran, _, turns) in _of_threads(pid, "schedstat")
        if thread in alive
    }


def moved(before: Ran, now: Ran) -> str:
    """Return, as text for people, the threads that came or have run between two readings."""
    ran = {thread: (spent, turns, *before.get(thread, (0, 0))) for thread, (spent, turns) in now.items()}
    return ", ".join(
        f"{spent - spent_before} ns in {turns - turns_before} turns"
        for spent, turns, spent_before, turns_before in ran.values()
        if (spent, turns) != (spent_before, turns_before)
    )


def _of_threads(pid: int, name: str, *, after: bytes = b"") -> Iterator[tuple[str, list[bytes]]]:
    """Yield the fields of one file for each thread. The guest chooses the text before `after`, which is a name."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/{name}", "rb") as file:
                text = file.read()
                yield thread, (text.rpartition(after)[2] if after else text).split()


def _descends(pid: int, ancestor: int) -> bool:
    """Return whether the chain of parents leads to `ancestor`.

    Any user may read this; reading the name of a namespace needs rights over PID 1.
    """
    while pid > 1 and pid != ancestor:
        try:
            pid = int(_stat(pid)[1])
        except OSError:
            return False
    return pid == ancestor


def _stat(pid: int) -> list[str]:
    """Return a process's fields from the third on (proc(5)): its state, its parent.

    The guest chooses the name before.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].decode().split()
