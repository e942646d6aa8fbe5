"""Starts guests with torch already imported: one process for each set of modules and variables forks them on demand.

A fork takes milliseconds, an import seconds. The zygote runs no candidate's code, and each fork builds all walls
around itself before it becomes a guest (`guest_entry/zygote.py`). Without a zygote, guests import everything
themselves.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from forge.sandbox.guest_entry.plan import FORK, FORK_ZYGOTE

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
    rare_modules: tuple[str, ...] = ()
    """Further modules, imported by a fork of the zygote with the other ones: they take seconds, and few need them."""

    @classmethod
    def of(
        cls, modules: tuple[str, ...], environment: Mapping[str, str], rare_modules: tuple[str, ...] = ()
    ) -> "Preparation":
        """Return the preparation for guests with these modules and variables."""
        return cls(modules, tuple(sorted(environment.items())), rare_modules)


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

    def poll(self) -> bool | None:
        """Return True if the process has ended, and None while it runs."""
        try:
            self.wait(0)
        except subprocess.TimeoutExpired:
            return None
        return True

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

    def __init__(self, preparation: Preparation, base: "Zygote | None" = None) -> None:
        """Execute the process, or fork it from the `base`, which has imported all but the rare modules."""
        self._control, theirs = socket.socketpair()
        self._control.settimeout(_IMPORT_S)
        self._lock = threading.Lock()
        with theirs:
            forked = base.order(FORK_ZYGOTE, (theirs.fileno(),)) if base is not None else None
            self._process: subprocess.Popen[bytes] | Forked | None = forked or _executed(preparation, theirs.fileno())
        if forked is not None:
            more = {"modules": preparation.rare_modules, "environment": dict(preparation.environment)}
            with contextlib.suppress(OSError):  # it is gone, which the next order shows
                self._control.sendall(json.dumps(more).encode() + b"\n")

    @classmethod
    def handed_over(cls, control: socket.socket) -> "Zygote":
        """Return the zygote that another process handed over by this socket."""
        zygote = cls.__new__(cls)
        zygote._control, zygote._lock, zygote._process = control, threading.Lock(), None
        control.settimeout(_IMPORT_S)
        return zygote

    def another(self) -> tuple[socket.socket, Forked] | None:
        """Fork a process like this one for another process; return the socket that orders it, and the process.

        It ends when the last reference closes that socket. Return None if this zygote is gone.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            forked = self.order(FORK_ZYGOTE, (theirs.fileno(),))
        if forked is None:
            ours.close()
            return None
        ours.sendall(json.dumps({"modules": [], "environment": {}}).encode() + b"\n")
        return ours, forked

    @property
    def pid(self) -> int:
        """Process id of the zygote; -1 for one that was handed over."""
        return -1 if self._process is None else self._process.pid

    def fork(self, descriptors: tuple[int, ...]) -> Forked | None:
        """Fork a process that waits for its plan on the first of `descriptors`; None if the zygote is gone."""
        return self.order(FORK, descriptors)

    def order(self, kind: bytes, descriptors: tuple[int, ...]) -> Forked | None:
        """Fork a process of one kind with these descriptors; None if the zygote is gone."""
        with self._lock:
            try:
                socket.send_fds(self._control, [kind], list(descriptors))
                _, received, _, _ = socket.recv_fds(self._control, 64, 1, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
            except OSError:
                self._kill()
                return None
        return Forked(received[0]) if received else None

    def close(self) -> None:
        """Kill the zygote; guests that it forked end with it."""
        self._control.close()
        self._kill()
        if self._process is not None:
            self._process.wait()

    def alive(self) -> bool:
        """Return whether the zygote still runs."""
        return self._process is not None and self._process.poll() is None

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()


def _executed(preparation: Preparation, descriptor: int) -> subprocess.Popen[bytes]:
    modules = (*preparation.modules, *preparation.rare_modules)
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM, _PACKAGES, str(descriptor), *modules],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(preparation.environment),
        cwd="/",
        pass_fds=(descriptor,),
        start_new_session=True,
    )


_prepared: dict[tuple[int, Preparation], Zygote] = {}
_preparing = threading.Lock()


def prepared(preparation: Preparation) -> Zygote:
    """Return the zygote for a preparation; start it if there is none. Its imports run in the background."""
    with _preparing:
        return _found_or_started(preparation)


def _found_or_started(preparation: Preparation) -> Zygote:
    key = (os.getpid(), preparation)  # a fork of this process must not share its parent's zygote
    zygote = _prepared.get(key)
    if zygote is not None and zygote.alive():
        return zygote
    if zygote is not None:
        zygote.close()
    base = _found_or_started(replace(preparation, rare_modules=())) if preparation.rare_modules else None
    _prepared[key] = Zygote(preparation, base)
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
