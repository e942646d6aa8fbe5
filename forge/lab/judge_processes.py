"""Answers requests in processes of their own: threads would wait for each other, as Python has one lock for all.

A server imports the judge once, and forks for each process, which takes milliseconds. The process gets a zygote for
its guests, then requests. It ends as soon as this process wants no answer more, or is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import NoReturn

from forge.errors import EnvironmentUnfit
from forge.lab.freed_memory import keep_freed_memory
from forge.lab.observed import judge_on_device_from
from forge.sandbox import calling_off
from forge.sandbox.zygote import Forked, Zygote, dismiss

_PROGRAM = """import json, sys
sys.path[:] = json.loads(sys.argv[2])
from forge.lab import judge_processes
judge_processes.serve(int(sys.argv[1]), sys.argv[3], sys.argv[4])
"""
"""Program of the server."""
_MODULES = ("torch", "numpy")
"""Modules that the server imports for the processes that it forks, besides that of the function."""
Answers = Callable[[Iterator[bytes], Zygote | None], Iterator[bytes]]
"""Function that answers requests; its guests are forked from the zygote."""
_LENGTH = struct.Struct("<Q")
"""Form of the number of bytes in front of a message."""
ON_DEVICE_ELEMENTS = 2**20
"""Number of elements from which on such a process judges on the GPU. Chosen; a context takes half a second and some
hundred MiB of the device's memory, so only processes with large operands have one."""


class JudgeProcess:
    """A process that answers requests; use as a context manager."""

    def __init__(self, server: JudgeServer, zygote: Zygote | None) -> None:
        """Start it. The function gets a zygote like the given one."""
        calling_off.require_wanted()
        self._connection, theirs = socket.socketpair()
        with theirs:
            server.fork(theirs)
        calling_off.began(self)
        self._zygote: Forked | None = None
        with contextlib.ExitStack() as handed:
            given: list[int] = []
            if zygote is not None and (another := zygote.another()) is not None:
                control, self._zygote = another
                given.append(handed.enter_context(control).fileno())
            with contextlib.suppress(OSError):  # it has ended, which shows when it is read
                socket.send_fds(self._connection, [b"z" if given else b"-"], given)

    def __enter__(self) -> JudgeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        _receive(self._connection)  # nothing, once it has ended with its guests
        if self._zygote is not None:
            self._zygote.kill()
            self._zygote.wait()
        calling_off.ended(self)
        self._connection.close()

    def tell(self, request: bytes) -> None:
        """Send a request without an answer of its own."""
        _send(self._connection, request)

    def ask(self, request: bytes) -> bytes:
        """Send a request and wait for its answer; raise EnvironmentUnfit if the process ends before."""
        _send(self._connection, request)
        said = _receive(self._connection)
        if said is None:
            raise EnvironmentUnfit(
                "a process that asks the candidate ended without an answer: expected a machine with memory for it; "
                "run it again"
            )
        return said

    def end(self) -> None:
        """End it and its guests from any thread; don't wait."""
        with contextlib.suppress(OSError):  # it has ended
            self._connection.shutdown(socket.SHUT_WR)


class JudgeServer:
    """The process that forks those that judge; it ends with this one."""

    def __init__(self, module: str, function: str) -> None:
        """Name the function that answers."""
        self._answers = module, function
        self._lock = threading.Lock()
        self._owner = 0
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, unless it runs: its imports take seconds, in the background."""
        with self._lock:
            self._running()

    def fork(self, connection: socket.socket) -> None:
        """Fork a process that reads its requests from this connection."""
        with self._lock:
            try:
                socket.send_fds(self._running(), [b"f"], [connection.fileno()])
            except OSError:  # it is gone
                self._end()
                socket.send_fds(self._running(), [b"f"], [connection.fileno()])

    def close(self) -> None:
        """End it; processes that it forked go on."""
        with self._lock:
            self._end()

    def _running(self) -> socket.socket:
        if self._owner != os.getpid():  # a fork gets another one than its parent
            self._end()
        if self._control is None:
            self._control, theirs = socket.socketpair()
            self._owner = os.getpid()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), json.dumps(sys.path), *self._answers],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        return self._control

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """Process id of the server; -1 if none was started."""
        return -1 if self._process is None else self._process.pid


SERVER = JudgeServer("forge.lab.asked_part", "answers")
"""Server of the processes that ask parts of gates."""
atexit.register(SERVER.close)


def serve(descriptor: int, module: str, function: str) -> None:
    """Import the function, then fork a process for each connection; return when the other end is gone."""
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    for name in _MODULES:
        importlib.import_module(name)
    sys.modules["torch"].set_num_threads(1)  # its processes keep the processors busy by themselves
    answers: Answers = getattr(importlib.import_module(module), function)
    gc.collect()
    gc.freeze()  # a collection would copy every page that it reads
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that ended processes leave nothing
    while True:
        data, received, _, _ = socket.recv_fds(control, 1, 1)
        if not data:
            return
        if os.fork() == 0:
            control.close()
            _answer(socket.socket(fileno=received[0]), answers)
        os.close(received[0])


def _answer(connection: socket.socket, answers: Answers) -> NoReturn:
    """Answer the requests that are sent, until no more is wanted, and end."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, _leave)
        keep_freed_memory()
        judge_on_device_from(ON_DEVICE_ELEMENTS)
        _, received, _, _ = socket.recv_fds(connection, 1, 1)
        zygote = Zygote.handed_over(socket.socket(fileno=received[0])) if received else None
        requests = SimpleQueue[bytes]()
        threading.Thread(target=_receive_all, args=(connection, requests), daemon=True).start()
        for said in answers(iter(requests.get, None), zygote):
            _send(connection, said)
    finally:
        if sys.exc_info()[0] not in (None, SystemExit):
            traceback.print_exc()
        dismiss()
        os._exit(0)


def _leave(*_: object) -> NoReturn:
    """End the guests on the way out."""
    raise SystemExit


def _receive_all(connection: socket.socket, requests: SimpleQueue[bytes]) -> None:
    """Pass requests on; leave when the other end wants no answer more."""
    while (request := _receive(connection)) is not None:
        requests.put(request)
    main = threading.main_thread().ident
    assert main is not None, "it runs"
    signal.pthread_kill(main, signal.SIGTERM)  # the one that may wait in the kernel


def _send(connection: socket.socket, message: bytes) -> None:
    with contextlib.suppress(OSError):  # the other end is gone, which shows when it is read
        connection.sendall(_LENGTH.pack(len(message)) + message)


def _receive(connection: socket.socket) -> bytes | None:
    """Return the next message; None if the other end is gone."""
    try:
        length = _exactly(connection, _LENGTH.size)
        return None if length is None else _exactly(connection, _LENGTH.unpack(length)[0])
    except ConnectionResetError:  # it didn't read all that was sent
        return None


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    """Return as many bytes; None if the other end is gone before."""
    content = bytearray()
    while len(content) < count:
        piece = connection.recv(count - len(content))
        if not piece:
            return None
        content += piece
    return bytes(content)
