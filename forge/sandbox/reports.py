"""Receives reports on a guest's start and end; only Forge's own processes hold the other end of this socket.

An unreadable line is no start and no end: the caller then refuses or kills.
"""

import array
import contextlib
import json
import os
import select
import signal
import socket
import threading
import time
from dataclasses import dataclass

from forge.sandbox.guest_entry.plan import SCRATCH, EntryPlan


@dataclass(frozen=True)
class Started:
    """The guest's program runs behind these walls."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class WallFailed:
    """A wall couldn't be built, so nothing was started."""

    step: str
    errno: int
    detail: str


@dataclass(frozen=True)
class ProgramEnded:
    """The guest's program ended with this wait status."""

    status: int
    cpu_s: float
    max_rss_bytes: int


class Reports:
    """The host's end of the channel, and its pidfd of PID 1 in the guest's namespace."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._pending = b""
        self._lock = threading.Lock()  # another thread may get a closed descriptor's number for another guest
        self._init: int | None = None
        self.scratch: int | None = None
        """Descriptor of the guest's tmpfs, from which its fill level is read."""
        self.started = Started(())
        self.failed: WallFailed | None = None
        self.ended: ProgramEnded | None = None
        self.open = True

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._channel.fileno()

    def send(self, plan: EntryPlan) -> None:
        """Send the orders. If the receiver is gone, `await_start` finds that out."""
        try:
            self._channel.sendall(plan.line())
        except OSError:
            self.open = False

    def await_start(self, timeout_s: float) -> Started | WallFailed | None:
        """Wait for the report that the guest runs or has failed; return None if there is none."""
        deadline = time.monotonic() + timeout_s
        while self.open and not self.started.parts and self.failed is None:
            self._channel.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                self.receive()
            except TimeoutError:
                return None
        self._channel.settimeout(None)
        return self.failed or (self.started if self.started.parts else None)

    def receive(self) -> None:
        """Read once and process every whole line."""
        data, ancillary, _, _ = self._channel.recvmsg(
            1 << 16, socket.CMSG_SPACE(4), getattr(socket, "MSG_CMSG_CLOEXEC", 0)
        )
        for _, _, payload in ancillary:
            numbers = array.array("i")
            numbers.frombytes(payload[:4])
            if data.endswith(SCRATCH):  # one call reads at most up to a line with a descriptor
                self.scratch = numbers[0]
            else:
                self._init = numbers[0]
        self.open = bool(data)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, message: dict[str, object]) -> None:
        match message:
            case {"started": [*parts]}:
                self.started = Started(tuple(map(str, parts)))
            case {"failed": str(step), "errno": int(errno), "detail": str(detail)}:
                self.failed = WallFailed(step, errno, detail)
            case {"ended": int(status), "cpu_s": float(cpu_s), "max_rss_bytes": int(max_rss_bytes)}:
                self.ended = ProgramEnded(status, cpu_s, max_rss_bytes)

    def init_pid(self) -> int | None:
        """Return the host's process id of the guest's PID 1; None if there is none or it is dead."""
        with self._lock:
            if self._init is None:
                return None
            with open(f"/proc/self/fdinfo/{self._init}", encoding="ascii") as facts:
                for line in facts:
                    if line.startswith("Pid:"):
                        pid = int(line.split()[1])
                        return pid if pid > 0 else None
        return None

    @property
    def knows_init(self) -> bool:
        """Whether PID 1 of the guest's namespace has reported itself."""
        return self._init is not None

    @property
    def shows_init(self) -> bool:
        """Whether /proc shows PID 1 of the guest's namespace as long as it lives.

        The option hidepid hides the processes of other users.
        """
        pid = self.init_pid()
        return pid is None or os.path.exists(f"/proc/{pid}/task") or self.init_pid() is None

    def kill_init(self) -> bool:
        """Kill PID 1 of the guest's namespace; return False if none is known."""
        with self._lock:
            if self._init is None:
                return False
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)
            return True

    def wait_for_init(self) -> None:
        """Return when PID 1 is dead, which the kernel delays until all of its namespace is reaped."""
        if self._init is not None:
            watch = select.poll()
            watch.register(self._init, select.POLLIN)
            watch.poll()

    def close(self) -> None:
        """Close the channel and the pidfd of PID 1."""
        self._channel.close()
        if self.scratch is not None:
            os.close(self.scratch)
            self.scratch = None
        with self._lock:
            if self._init is not None:
                os.close(self._init)
                self._init = None
