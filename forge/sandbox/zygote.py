"""Starts guests with torch already imported: one process for each set of modules and variables forks them on demand.

A fork takes milliseconds, an import seconds. The zygote runs no candidate's code, and each fork builds all walls
around itself before it becomes a guest (`guest_entry/zygote.py`). Without a zygote, guests import everything
themselves.
"""

import atexit
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = """import sys
sys.path.append(sys.argv[1])
from forge.sandbox.guest_entry import zygote
run = zygote.main(int(sys.argv[2]), sys.argv[3:])
del zygote
if run is not None:
    run()
"""
"""Program of the zygote. It is passed as text, so that the one frame below a guest's own has no file name of the
host's."""
_PACKAGES = str(Path(__file__).resolve().parents[2])
_IMPORT_S = 120.0
"""Seconds that the zygote's imports may take. Chosen; torch takes some seconds, and tens of them from a cold disk."""


@dataclass(frozen=True)
class Preparation:
    """The properties that all guests of one zygote share."""

    modules: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, modules: tuple[str, ...], environment: Mapping[str, str]) -> "Preparation":
        """Return the preparation for guests with these modules and variables."""
        return cls(modules, tuple(sorted(environment.items())))


class Forked:
    """A guest's supervisor that isn't a child of this process; it is signalled and awaited by pidfd."""

    def __init__(self, pidfd: int) -> None:
        self._pidfd = pidfd
        self.pid = _pid_of(pidfd)

    def kill(self) -> None:
        """Kill the process at once."""
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the supervisor to end its tree."""
        self._signal(signal.SIGTERM)

    def wait(self, timeout: float | None = None) -> None:
        """Return when the process has ended; raise subprocess.TimeoutExpired after `timeout` seconds."""
        if self._pidfd < 0:
            return
        watch = select.poll()
        watch.register(self._pidfd, select.POLLIN)
        if not watch.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired("the supervisor", timeout or 0.0)
        os.close(self._pidfd)
        self._pidfd = -1

    def _signal(self, number: int) -> None:
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)


class Zygote:
    """A process that forks guests; it ends with this process, or when the last reference closes its socket."""

    def __init__(self, preparation: Preparation) -> None:
        self._control, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM, _PACKAGES, str(theirs.fileno()), *preparation.modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(preparation.environment),
                cwd="/",
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._control.settimeout(_IMPORT_S)

    @property
    def pid(self) -> int:
        """Process id of the zygote."""
        return self._process.pid

    def fork(self, descriptors: tuple[int, ...]) -> Forked | None:
        """Fork a process that waits for its plan on the first of `descriptors`; None if the zygote is gone."""
        with self._lock:
            try:
                socket.send_fds(self._control, [b"f"], list(descriptors))
                _, received, _, _ = socket.recv_fds(self._control, 64, 1, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
            except OSError:
                self._process.kill()
                return None
        return Forked(received[0]) if received else None

    def close(self) -> None:
        """Kill the zygote; guests that it forked end with it."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def alive(self) -> bool:
        """Return whether the zygote still runs."""
        return self._process.poll() is None


_prepared: dict[tuple[int, Preparation], Zygote] = {}
_preparing = threading.Lock()


def prepared(preparation: Preparation) -> Zygote:
    """Return the zygote for a preparation; start it if there is none. Its imports run in the background."""
    with _preparing:
        key = (os.getpid(), preparation)  # a fork of this process must not share its parent's zygote
        zygote = _prepared.get(key)
        if zygote is not None and zygote.alive():
            return zygote
        if zygote is not None:
            zygote.close()
        _prepared[key] = Zygote(preparation)
        return _prepared[key]


def dismiss() -> None:
    """End every zygote of this process."""
    with _preparing:
        for owner, preparation in list(_prepared):
            zygote = _prepared.pop((owner, preparation))
            if owner == os.getpid():
                zygote.close()


atexit.register(dismiss)


def pids() -> frozenset[int]:
    """Return the process ids of the zygotes that wait for work."""
    return frozenset(zygote.pid for (owner, _), zygote in _prepared.items() if owner == os.getpid())


def _pid_of(pidfd: int) -> int:
    facts = Path(f"/proc/self/fdinfo/{pidfd}").read_text()
    return next((int(line.split()[1]) for line in facts.splitlines() if line.startswith("Pid:")), -1)
