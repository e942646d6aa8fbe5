"""Runs as the process between the host and the guest: it stays in the host's PID namespace and ends last.

Distrusts that its parent lives: when the host dies, in any way, the tree dies. Linux sends the parent death signal
when the *thread* that started this process ends. So the signal only makes this process check who its parent is.
Without namespaces this process also ends the guest's tree, by following parent numbers. That is best effort: a guest
of the same uid may kill this process or hide from it, so that level is no wall.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import time

from forge.sandbox.guest_entry import kernel, privileges
from forge.sandbox.guest_entry.init import report_end

PARENT_CHANGED = signal.SIGUSR1
"""Signal that the supervisor gets when its parent has died."""
END_NOW = signal.SIGTERM
"""Signal by which the host ends the guest."""
_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
"""Number of the option PR_SET_CHILD_SUBREAPER of prctl(2)."""
_ENDING_S = 5.0
"""Seconds to try to kill all descendants of a guest without namespaces. Chosen; killing takes milliseconds, unless a
guest forks as fast as it is killed."""


class Alarm:
    """Turns signals into readable bytes, so that waiting for one has no race and needs no polling on Linux."""

    def __init__(self) -> None:
        self.read_end, write_end = os.pipe()
        self.write_end = write_end
        os.set_blocking(self.read_end, False)
        os.set_blocking(write_end, False)
        for number in (signal.SIGCHLD, PARENT_CHANGED, END_NOW):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        self._pause_s = None if sys.platform == "linux" else 0.2  # other systems don't signal the parent's death

    def wait(self) -> set[int]:
        """Sleep until a signal comes; return the signals that came."""
        if not select.select([self.read_end], [], [], self._pause_s)[0]:
            return set()
        return set(os.read(self.read_end, 4096))


def follow_host(host_pid: int) -> None:
    """Watch for the host's death from here on; exit if it is already dead."""
    if sys.platform == "linux":
        privileges.die_with_parent(PARENT_CHANGED)
    if os.getppid() != host_pid:
        os._exit(1)


def outlive(init: int, alarm: Alarm, host_pid: int) -> None:
    """Wait for PID 1 of the guest's namespace, and kill it when the host dies or asks for it."""
    signals: set[int] = set()
    while True:
        if os.waitpid(init, os.WNOHANG)[0] == init:
            return
        if END_NOW in signals or os.getppid() != host_pid:
            os.kill(init, signal.SIGKILL)
        signals = alarm.wait()


def adopt_orphans() -> None:
    """Become the parent of the guest's orphans, if the kernel can do that."""
    if sys.platform == "linux":
        with kernel.step("subreaper"):
            kernel.prctl(_SET_CHILD_SUBREAPER, 1)


def outlive_unconfined(main: int, alarm: Alarm, host_pid: int, channel: socket.socket) -> None:
    """Wait for a guest without namespaces, then kill all descendants of this process."""
    signals: set[int] = set()
    while True:
        pid, status, usage = os.wait3(os.WNOHANG)
        if pid == main:
            _end_descendants(main)
            report_end(channel, status, usage)
            return
        if END_NOW in signals or os.getppid() != host_pid:
            _kill(main, *_descendants(os.getpid()))
        if pid == 0:
            signals = alarm.wait()


def _end_descendants(main: int) -> None:
    """Kill and reap until no child is left, or time is up."""
    deadline = time.monotonic() + _ENDING_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # the group is empty
            os.killpg(main, signal.SIGKILL)
        remaining = _descendants(os.getpid())
        _kill(*remaining)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            if not remaining:
                return
        time.sleep(0.005)


def _kill(*pids: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue


def _descendants(ancestor: int) -> list[int]:
    """Return every process whose chain of parents leads to `ancestor`."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _parents() -> list[tuple[int, int]]:
    if sys.platform != "linux":
        import subprocess  # importing it takes longer than the rest of the start

        # `ps` lists itself as a child of this process; it is gone when it would be killed
        command = ["/bin/ps", "-axo", "pid=,ppid="]
        output = subprocess.run(command, capture_output=True, check=False, env={}).stdout
        return [(int(pid), int(parent)) for pid, parent in (line.split() for line in output.splitlines())]
    pairs = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:  # it ended while we looked
                continue
            pairs.append((int(name), int(fields[1])))
    return pairs
