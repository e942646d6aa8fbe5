"""Counts what a guest's tree consumes while the host waits for it, and tells sleeping from waiting for a processor.

The kernel gives the numbers. A limit on a candidate's work is on these, never on the clock of a busy host. The host
looks only while it waits for a guest's answer: a stopped guest consumes nothing.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from forge.sandbox.allowance import AllowanceExcess
from forge.sandbox.freeze import children, descendants
from forge.sandbox.limits import Limits

WorkExcess = Literal["thread", "reply", "processor", "asleep", "still"] | AllowanceExcess
"""End of a guest's work. `thread`: one thread used up its processor seconds. `reply`: one thread did so within one
command. `processor`: all processes together used up theirs. `asleep`: no thread wanted a processor. `still`: the
guest was idle, and the machine may be the reason. Others: see allowance.py."""
_LOOK_S = 0.25
"""Seconds between two looks. Chosen; each reads a file of every thread."""
_TICKS = os.sysconf("SC_CLK_TCK")
"""Number of the kernel's clock ticks in a second."""
STILL_SHARE = 1 / 16
"""Share of a processor below which a guest is idle, and share of looks that count as seldom. On a machine with
four times its load, a thread that wants a processor gets a fifth of one."""
FEWEST_LOOKS = 16
"""Number of looks before a guest counts as idle, at least. Chosen; a host that seldom gets a processor waits
longer."""
_READY, _ON_DISK = b"R", b"D"
"""Two states of a thread. In the first it runs or wants a processor; in the second it waits for a disk or for a page
of memory."""


@dataclass(frozen=True)
class Consumption:
    """What a tree has consumed so far, and what its threads want now, by the kernel's counts."""

    total_s: float
    """Processor seconds of all processes, with those that have ended."""
    ran_s: Mapping[str, float]
    """Processor seconds of each thread that is there."""
    states: frozenset[bytes]
    """States of the threads."""


@dataclass
class _Window:
    """Looks at a guest since it last ran for more than a small share of the time."""

    began_s: float
    before: Consumption
    looks: int = 0
    ready: int = 0
    """Number of looks that saw a thread that runs or wants a processor."""
    on_disk: int = 0
    """Number of looks that saw a thread wait for a disk or for memory."""

    def add(self, reading: Consumption) -> None:
        self.looks += 1
        self.ready += _READY in reading.states
        self.on_disk += _ON_DISK in reading.states

    def ran_s(self, now: Consumption) -> float:
        """Return the processor seconds since the window began."""
        of_threads = (ran_s - self.before.ran_s.get(thread, 0.0) for thread, ran_s in now.ran_s.items())
        return max(now.total_s - self.before.total_s, sum(of_threads))


class Work:
    """What one tree may still consume; `root` is its PID 1, `group_ns` reads its group's processor nanoseconds."""

    def __init__(self, root: int, limits: Limits, group_ns: Callable[[], int | None] = lambda: None) -> None:
        self._root, self._limits, self._group_ns = root, limits, group_ns
        self._next_look_s = 0.0
        self._allowance_s = 0.0
        self._counted_s, self._looked_s = 0.0, time.monotonic()
        self._counting = threading.Lock()
        self._asked: Consumption | None = None
        self._window: _Window | None = None

    def begin(self) -> None:
        """Begin to wait for an answer."""
        self._asked = self._window = None
        self._looked_s = time.monotonic()

    def count(self) -> None:
        """Count what was consumed since the last look on the candidate's account."""
        if self._limits.shared is not None:
            self._count(read(self._root, self._group_ns()), 0.0)

    def allow(self, more_s: float) -> None:
        """Raise the limits of each thread and of the tree by this many processor seconds."""
        self._allowance_s += more_s

    def look(self) -> WorkExcess | None:
        """Return the limit that is exceeded, if there is one; this is cheap, and may be called at any rate."""
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return None
        self._next_look_s = now_s + _LOOK_S
        reading = read(self._root, self._group_ns())
        if not reading.ran_s:
            return None  # this system shows no threads: only the wall clock ends the guest
        if self._limits.shared is not None:
            self._count(reading, now_s - self._looked_s)
            self._looked_s = now_s
            if self._limits.shared.excess is not None:
                return self._limits.shared.excess
        return self._spent(reading) or self._standing(reading, now_s)

    def _count(self, reading: Consumption, waited_s: float) -> None:
        assert self._limits.shared is not None, "only a guest with an account counts on it"
        with self._counting:  # the watching thread looks, and another one ends the guest
            self._limits.shared.count(reading.total_s - self._counted_s, waited_s)
            self._counted_s = max(self._counted_s, reading.total_s)

    def _spent(self, now: Consumption) -> WorkExcess | None:
        limits, more_s = self._limits, self._allowance_s
        before = self._asked = self._asked or now
        in_reply_s = max((ran_s - before.ran_s.get(thread, 0.0) for thread, ran_s in now.ran_s.items()), default=0.0)
        busiest_s = max(now.ran_s.values(), default=0.0)
        if limits.thread_cpu_s is not None and busiest_s > limits.thread_cpu_s + more_s:
            return "thread"
        if limits.reply_cpu_s is not None and in_reply_s > limits.reply_cpu_s + more_s:
            return "reply"
        if limits.total_cpu_s is not None and now.total_s > limits.total_cpu_s + more_s:
            return "processor"
        return None

    def _standing(self, now: Consumption, now_s: float) -> WorkExcess | None:
        """Return why the tree was idle for `still_s` seconds; None if it wasn't, or if it waited for a processor."""
        if self._limits.still_s is None:
            return None
        window = self._window = self._window or _Window(now_s, now)
        window.add(now)
        elapsed_s = now_s - window.began_s
        if elapsed_s < self._limits.still_s or window.looks < FEWEST_LOOKS:
            return None
        self._window = None
        seldom = STILL_SHARE * window.looks
        if window.ran_s(now) >= STILL_SHARE * elapsed_s or window.ready >= seldom:
            return None  # it works, or it wants a processor and gets none, which is the machine's doing
        own = window.on_disk < seldom and not self._limits.waits_for_device
        return "asleep" if own else "still"


def read(root: int, group_ns: int | None) -> Consumption:
    """Read what the descendants of `root` have consumed; a process that is gone has nothing."""
    ran_s: dict[str, float] = {}
    states: set[bytes] = set()
    for pid in descendants(root):
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()  # proc(5): from the third on
                    states.add(fields[0])
                    ran_s[f"{pid}/{thread}"] = (int(fields[11]) + int(fields[12])) / _TICKS
    return Consumption(tree_cpu_s(root) if group_ns is None else group_ns / 1e9, ran_s, frozenset(states))


def tree_cpu_s(root: int) -> float:
    """Return the processor seconds of a process, its descendants, and all that they waited for.

    The result never exceeds what was used. Each process is read before its children. A child that ends in between is
    missed once, and never counted twice. A process that ignores the end of its children hides theirs.
    """
    total_s, seen, waiting = 0.0, {root}, [root]
    while waiting:
        pid = waiting.pop()
        total_s += _own_s(pid)
        for started in children(pid):
            waiting += started - seen
            seen |= started
    return total_s


def _own_s(pid: int) -> float:
    """Return the processor seconds of one process and the children it waited for (proc(5): fields 14 to 17).

    A process that is gone has 0.
    """
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS
    return 0.0
