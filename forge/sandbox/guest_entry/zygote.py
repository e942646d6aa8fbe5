"""Runs as a process that has imported what guests need, and forks them.

It never runs a candidate. Each fork enters in the same way as `__main__`, behind the same walls. It then has its
program's modules already, while a new interpreter takes seconds to import them. The zygote holds no secret: every
guest may read what it knows. All guests of one zygote share an address space layout; guests that are timed have a new
zygote for each process pair.
"""

import array
import functools
import gc
import importlib.machinery
import importlib.util
import json
import os
import signal
import socket
import sys
from collections.abc import Callable

from forge.sandbox.guest_entry import entering, init, kernel, privileges
from forge.sandbox.guest_entry.plan import FORK, EntryPlan, receive, send_descriptor

MOST_DESCRIPTORS = 16
"""Number of descriptors that a guest gets, at most. Chosen; the kernel sends up to 253 at once (SCM_MAX_FD)."""


class Become(BaseException):
    """Unwinds a forked guest's stack, so that no frame of Forge lies below its own."""

    def __init__(self, plan: EntryPlan) -> None:
        super().__init__()
        self.plan = plan


def serve(control: socket.socket, modules: list[str]) -> None:
    """Import the modules, then fork a guest or another zygote for each message.

    Return when the host is gone; raise Become in a guest.
    """
    _import(modules)
    signal.signal(signal.SIGCHLD, _reap)
    while (order := _receive(control))[1]:
        kind, numbers = order
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
        child = os.fork()
        if child == 0:
            control = _forked(control, kind, numbers)
            continue
        send_descriptor(control, os.pidfd_open(child))
        for number in numbers:
            os.close(number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))


def _import(modules: list[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    _hash_the_compiler()
    for name in list(os.environ):  # they have been read, and a guest's C code must find only its own variables
        del os.environ[name]
    gc.collect()
    gc.freeze()  # a collection in a guest would copy every page that it reads


def _hash_the_compiler() -> None:
    """Let Triton hash its own files for its cache's keys, which would take each guest that compiles 0.9 s."""
    key = getattr(sys.modules.get("triton.runtime.cache"), "triton_key", None)
    if key is not None and os.environ.get("TRITON_INTERPRET") != "1":
        key()


def _forked(control: socket.socket, kind: bytes, numbers: list[int]) -> socket.socket:
    """Become a guest, or return the socket of a process that serves as this one's parent does, with more modules."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if kind == FORK:
        try:
            _enter(numbers)
        except Become:
            control.detach()  # its number now belongs to another file
            raise
    os.setsid()
    control.close()
    own = socket.socket(fileno=numbers[0])
    own.set_inheritable(False)
    with own.makefile("rb", buffering=0) as orders:  # so that it reads no byte of the next order
        more = json.loads(orders.readline())
    os.environ.update(more["environment"])
    _import(more["modules"])
    signal.signal(signal.SIGCHLD, _reap)
    return own


def _receive(control: socket.socket) -> tuple[bytes, list[int]]:
    """Return the next order with its descriptors; none when the host has ended.

    A guest's are its channel, its log, and its own; that of another process that forks guests is its socket.
    """
    numbers = array.array("i")
    space = socket.CMSG_SPACE(MOST_DESCRIPTORS * numbers.itemsize)
    data, ancillary, _, _ = control.recvmsg(1, space, socket.MSG_CMSG_CLOEXEC)
    for _, _, payload in ancillary if data else ():
        numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
    return data, numbers.tolist()


def _reap(*_: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _enter(numbers: list[int]) -> None:
    """Enter as `__main__` does for one guest; raise Become in the guest's own process."""
    os.setsid()
    channel = socket.socket(fileno=numbers[0])
    log, *given = numbers[1:]
    for standard in (1, 2):
        os.dup2(log, standard)
    os.close(log)
    try:
        plan = receive(channel)._replace(host_pid=os.getppid(), descriptors=given)
        entering.enter(channel, plan, _unwind)
    except Become:
        channel.detach()  # its number now belongs to another file
        raise
    os._exit(0)


def _unwind(plan: EntryPlan, status: int) -> None:
    try:
        privileges.set_dumpable(True)  # as after an execve: /proc/self is the guest's own again
    except kernel.StepFailed as failure:
        init.give_up(status, failure)
    os.close(status)
    raise Become(plan)


def main(descriptor: int, modules: list[str]) -> Callable[[], None] | None:
    """Serve until the host is gone; in a guest, return the function that runs its program."""
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    try:
        serve(control, modules)
    except Become as guest:
        return _as_if_just_started(guest.plan)
    return None


def _as_if_just_started(plan: EntryPlan) -> Callable[[], None]:
    """Restore the state of an interpreter that was executed with this plan's arguments and variables.

    Return the function that runs its program.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == "forge"]:
        del sys.modules[name]
    sys.path.pop()
    os.environ.update(plan.environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Python sets these three in the same way at its start
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    sys.argv = plan.argv[2:]
    loader = importlib.machinery.SourceFileLoader("__main__", sys.argv[0])
    spec = importlib.util.spec_from_file_location("__main__", sys.argv[0], loader=loader)
    if spec is None:
        raise ImportError(f"{sys.argv[0]} can't be run")
    program = sys.modules["__main__"] = importlib.util.module_from_spec(spec)
    return functools.partial(loader.exec_module, program)
