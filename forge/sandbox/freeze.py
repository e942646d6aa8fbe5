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
import select
import signal
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise

from forge.sandbox.guest_memory import GuestMemory

_STOPPED = frozenset((b"T", b"t"))
_ENDED = frozenset((b"Z", b"X", b"x"))
"""States of threads that never return to their program, though the kernel may still have to clean up after them."""
_STILL = _STOPPED | _ENDED
_EXITING = 0x4
"""Flag of a process that has begun to end (PF_EXITING in the kernel's sched.h)."""
_PATIENCE_S = 5.0
"""Seconds after which stopping a guest fails. Chosen: ten times `_WATCHED_S`, so that a wait for a processor has been
seen by then."""
_WATCHED_S = 0.5
"""Seconds after which a stop that isn't over is looked at: how long does a thread wait for a processor?"""
_SETTLING_S = 0.0002
"""Seconds for which a stop waits for the threads that it knows before it looks for new processes, at most. Chosen: no
longer than a look takes, since a new process works on meanwhile, and a thread in vfork doesn't stop at all."""
_BREATH_S = 1e-6
"""Seconds between two looks at the threads that a stop waits for. The kernel wakes this thread up to 50 us late. That
is about as long as a thread takes to stop, and leaves it the processor meanwhile."""
_QUEUE_INFO_S = 0.25
"""Seconds for which a thread off its processor may seem to wait for one. After that this kernel is assumed not to
show where threads sleep."""
_READ_BYTES = 2**16
"""Number of bytes that one reading asks the kernel for. Only a list of thousands of processes is longer, and then
takes another reading."""
_LIST = "children"
"""Name of the file that lists the processes that a thread has started, of any length (proc(5))."""
Ran = dict[str, tuple[int, int]]
"""Run times by a thread's folder: nanoseconds on a processor, and number of turns there."""
Waited = dict[str, tuple[int, int]]
"""Nanoseconds that a thread ran and that it waited for a processor, by its folder."""
Scheduled = dict[str, tuple[int, int, int]]
"""Nanoseconds that a thread ran and that it waited for a processor, and its number of turns there, by its folder."""


class FrozenGuest:
    """The processes of one guest, stopped or continued; `thaw` continues them.

    They are held while they run too. So the next stop reaches those that were there before it looks for new ones.
    """

    def __init__(self, init_pid: int) -> None:
        self._init_pid = init_pid
        self._held: dict[int, int] = {}
        """Pidfd of each process that was stopped once, by process id."""
        self.standing = False
        """Whether the guest was stopped and not continued since."""
        self._ran: Ran = {}
        """Run times of all threads when everything was still."""
        self._times: Waited = {}
        """Nanoseconds that each thread ran and waited for a processor, when the guest was last stopped."""
        self._before = self._times
        """Those times when it was stopped before that."""
        self.stop_waited_ns = 0
        """Nanoseconds that one thread waited for a processor while the guest was stopped last, if that was long."""
        self._memory: GuestMemory | None = None
        self._tells = True
        """Whether the kernel shows where a stopped thread sleeps. It may not for a process that can't be traced."""

    def freeze(self) -> bool:
        """Stop every process but PID 1; return False if one still runs after seconds."""
        began_s = time.monotonic()
        pause_s = 0.0
        watched: Waited = {}
        self.stop_waited_ns = 0
        self._stop_held()
        while (elapsed_s := time.monotonic() - began_s) < _PATIENCE_S:
            if elapsed_s < _SETTLING_S and any(_state(thread) not in _STILL for thread in self._ran):
                time.sleep(_BREATH_S)
                continue
            found = _threads_below(self._init_pid)
            fresh = found.keys() - self._held.keys()
            for pid in fresh:
                self._stop(pid)
            states = {pid: _states(threads) for pid, threads in found.items() if pid not in fresh}
            known = [thread for one in states.values() for thread in one]
            moving = {pid for pid, one in states.items() if not set(one.values()) <= _STILL}
            if not fresh and not moving:
                alive = [thread for one in states.values() for thread in one if one[thread] not in _ENDED]
                self._ran = _ran(_scheduled(known))
                if self._all_left(alive) and self._complete(found):
                    now = _scheduled(known)
                    if self._ran == _ran(now):
                        self._before, self._times = self._times, _waited(now, alive)
                        return True
                self._tells = self._tells and elapsed_s < _QUEUE_INFO_S
            if elapsed_s > _WATCHED_S:
                waited = _waited(_scheduled(known), known)
                watched = {**waited, **watched}
                self.stop_waited_ns = longest_wait_ns(watched, waited)
            pause_s = self._stop_again(moving & self._held.keys(), pause_s)
        return False

    def _stop_again(self, moving: Iterable[int], pause_s: float) -> float:
        """Stop processes that another one or their own timer may have continued; return the next pause's seconds."""
        for pid in moving:
            _signal(self._held[pid], signal.SIGSTOP)
        time.sleep(pause_s)
        return min(0.01, pause_s * 2 + 0.0001)

    def _complete(self, found: dict[int, list[str]]) -> bool:
        """Return whether a list that is read now holds the same threads, and each process still has some.

        The kernel may leave a process out of a list if another one leaves that list while it is read. An empty list
        is complete only when PID 1 has ended too.
        """
        if not found:
            return _has_ended(self._init_pid)
        return _threads_below(self._init_pid) == found and all(found.values())

    def moved(self) -> str:
        """Return which threads have run since they were stopped, as text; empty if none."""
        if not self.standing:
            return ""
        below = _threads_below(self._init_pid).values()
        now = _ran(_scheduled(thread for threads in below for thread in threads))
        changed = {thread: times for thread, times in now.items() if times != self._ran.get(thread)}
        return moved(self._ran, {thread: changed[thread] for thread in changed if _state(thread) not in _ENDED})

    @property
    def held(self) -> tuple[int, ...]:
        """Ids of the processes that were stopped once; some may have ended."""
        return tuple(self._held)

    def open_memory(self) -> GuestMemory:
        """Open the memory of the only process, which hasn't run a candidate's code yet."""
        self._memory = GuestMemory(self.held)
        return self._memory

    def undelayed_ns(self, elapsed_ns: int) -> int:
        """Return the nanoseconds of the last release without those in which its threads waited for a processor."""
        return undelayed_ns(elapsed_ns, self._before, self._times)

    def _all_left(self, threads: list[str]) -> bool:
        return all(_off_queue(thread) if self._tells else _off_processor(thread) for thread in threads)

    def thaw(self) -> None:
        """Continue every stopped process."""
        for pidfd in self._held.values():
            _signal(pidfd, signal.SIGCONT)
        self.standing = False

    def close(self) -> None:
        """Release the processes and their memory without continuing them."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        for pidfd in self._held.values():
            os.close(pidfd)
        self._held.clear()
        self.standing = False

    def _stop_held(self) -> None:
        """Stop the processes that were held before; release those that have ended, whose numbers may come again."""
        self.standing = True
        ends = select.poll()
        for pidfd in self._held.values():
            ends.register(pidfd, select.POLLIN)
        ended = {pidfd for pidfd, _ in ends.poll(0)}
        for pid, pidfd in list(self._held.items()):
            if pidfd in ended:
                os.close(self._held.pop(pid))
            else:
                _signal(pidfd, signal.SIGSTOP)

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
    return set(_threads_below(root))


def _threads_below(root: int) -> dict[int, list[str]]:
    """Return the folders of the threads of every process below `root`, by the kernel's own lists."""
    found: dict[int, list[str]] = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        found[pid] = threads = threads_of(pid)
        for thread in threads:
            waiting += _started_by(thread) - found.keys() - set(waiting)
    del found[root]
    return found


def any_alive(root: int) -> bool:
    """Return whether a process below `root` still runs its program: it has neither ended nor begun to end."""
    for pid in descendants(root):
        with contextlib.suppress(OSError):
            fields = _stat(pid)
            if fields[0] != "Z" and not int(fields[6]) & _EXITING:
                return True
    return False


def children(pid: int) -> Iterator[set[int]]:
    """Yield the ids of the child processes that each thread of a process has started."""
    yield from map(_started_by, threads_of(pid))


def _started_by(thread: str) -> set[int]:
    return set(map(int, _fields(thread, _LIST)))


def _signal(pidfd: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


def threads_of(pid: int) -> list[str]:
    """Return the folder of each thread of a process; none if it is gone. Raise OSError if the list can't be read."""
    try:
        return [f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _fields(thread: str, name: str, *, after: bytes = b"") -> list[bytes]:
    """Return the fields of a thread's file; none if it is gone or not shown. Raise OSError if no file can be opened.

    The guest chooses the text before `after`, a name. Each release reads tens of such files, so the buffers and the
    type checks of `open` are avoided. The kernel may give a list in several pieces, any other file in one.
    """
    try:
        descriptor = os.open(f"{thread}/{name}", os.O_RDONLY)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []
    try:
        text = more = os.read(descriptor, _READ_BYTES)
        while more and name == _LIST:
            more = os.read(descriptor, _READ_BYTES)
            text += more
    except OSError:
        return []
    finally:
        os.close(descriptor)
    return (text.rpartition(after)[2] if after else text).split()


def _state(thread: str) -> bytes:
    """Return the kernel's letter for a thread's state; that of an ended one if it is gone."""
    return next(iter(_fields(thread, "stat", after=b")")), b"X")


def _states(threads: Iterable[str]) -> dict[str, bytes]:
    return {thread: _state(thread) for thread in threads}


def _off_queue(thread: str) -> bool:
    """Return whether a stopped thread sleeps; the kernel reports 0 for one that must still leave its processor."""
    return _fields(thread, "wchan") not in ([], [b"0"])


def _off_processor(thread: str) -> bool:
    """Return whether a stopped thread has left its processor as often as it came, if that is counted.

    Any user may read these counts. The order of the two readings matters: a running thread has come once more than it
    has left, whatever happens between the readings.
    """
    left = _times_left(_fields(thread, "status"))
    came = _fields(thread, "schedstat")
    return not came or int(came[2]) in (0, left)


def _times_left(status: list[bytes]) -> int:
    """Return how often a thread gave up or lost its processor.

    A guest's thread names are too short to imitate these fields.
    """
    named = pairwise(status)
    return sum(int(value) for name, value in named if name.endswith(b"voluntary_ctxt_switches:"))


def _scheduled(threads: Iterable[str]) -> Scheduled:
    """Return the kernel's counts for each of the threads that is still there."""
    read = ((thread, _fields(thread, "schedstat")) for thread in threads)
    return {thread: (int(fields[0]), int(fields[1]), int(fields[2])) for thread, fields in read if fields}


def _ran(scheduled: Scheduled) -> Ran:
    return {thread: (ran_ns, turns) for thread, (ran_ns, _, turns) in scheduled.items()}


def _waited(scheduled: Scheduled, threads: Iterable[str]) -> Waited:
    return {thread: scheduled[thread][:2] for thread in threads if thread in scheduled}


def undelayed_ns(elapsed_ns: int, before: Waited, now: Waited) -> int:
    """Return the time of a release on a machine that isn't busy, from what each thread has run and waited.

    The result is too small if several threads waited at once, but at least the time that one of them ran.
    """
    since = {thread: before.get(thread, (0, 0)) for thread in now}
    ran = (now[thread][0] - earlier[0] for thread, earlier in since.items())
    waited = sum(now[thread][1] - earlier[1] for thread, earlier in since.items())
    return max(1, elapsed_ns - waited, *ran)


def longest_wait_ns(first: Waited, now: Waited) -> int:
    """Return the longest time for which one thread waited for a processor since the first reading."""
    return max((waited - first[thread][1] for thread, (_, waited) in now.items()), default=0)


def waited_ns() -> int:
    """Return the nanoseconds that the calling thread has waited for a processor; 0 if the machine doesn't show it."""
    fields = _fields("/proc/thread-self", "schedstat")
    return int(fields[1]) if fields else 0


def moved(before: Ran, now: Ran) -> str:
    """Return, as text for people, the threads that came or have run between two readings."""
    ran = {thread: (spent, turns, *before.get(thread, (0, 0))) for thread, (spent, turns) in now.items()}
    return ", ".join(
        f"{spent - spent_before} ns in {turns - turns_before} turns"
        for spent, turns, spent_before, turns_before in ran.values()
        if (spent, turns) != (spent_before, turns_before)
    )


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


def _has_ended(pid: int) -> bool:
    """Return whether a process is gone or has ended. A failure to read raises OSError: it shows nothing."""
    try:
        return _stat(pid)[0].encode() in _ENDED
    except (FileNotFoundError, ProcessLookupError):
        return True


def _stat(pid: int) -> list[str]:
    """Return a process's fields from the third on (proc(5)): its state, its parent.

    The guest chooses the name before.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].decode().split()
