"""Runs as PID 1 of the guest's namespace: builds the walls, starts the guest, reaps its orphans, reports its end.

Distrusts the guest, which shares its PID namespace and its uid. This process can't be traced (not dumpable), its
command line is erased, and the kernel ignores signals to it from inside. It has dropped as many rights as the guest
has. When it exits, the kernel kills every process that is left.
"""

import fcntl
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn

from forge.sandbox.guest_entry import descriptors, kernel, landlock, namespaces, privileges, rlimits, root, seccomp
from forge.sandbox.guest_entry.plan import SCRATCH, EntryPlan, send_descriptor, tell

_LOOK_S = 1.0
"""Seconds between two checks that the supervisor lives. A guest outlives a killed supervisor by at most this time."""

Become = Callable[[EntryPlan, int], None]
"""Function that makes the prepared process the guest's program and closes its status descriptor; it never returns."""


def run(plan: EntryPlan, channel: socket.socket, peer: int, become: Become, *, proc: int | None = None) -> NoReturn:
    """Be PID 1, and send the host this process, its scratch and the start, in this order.

    One process sends all three: of two processes, a busy machine may let the second one send first. `peer` is a pipe
    that hangs up when the supervisor dies; `proc` is the host's /proc if it isn't mounted.
    """
    try:
        _forget_signals()
        send_descriptor(channel, os.pidfd_open(os.getpid()))
        parts = _confine(plan, peer, proc)
        send_descriptor(channel, os.open("/scratch", os.O_PATH | os.O_DIRECTORY), SCRATCH)
        main = start_guest(plan, become)
        tell(channel, started=parts)
    except kernel.StepFailed as failure:
        tell(channel, failed=failure.step, errno=failure.errno, detail=failure.detail)
        os._exit(1)
    descriptors.silence()
    descriptors.close_all_but(channel.fileno(), peer)
    _reap_until(main, channel, peer)
    os._exit(0)


def _confine(plan: EntryPlan, peer: int, proc: int | None) -> list[str]:
    """Take every step in the one order that works; return the walls that stand."""
    privileges.die_with_parent(signal.SIGKILL)
    privileges.require_peer(peer)
    with kernel.step("proc of the host"):
        proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY) if proc is None else proc
        _be_first_to_go(proc)
    privileges.erase_command_line(proc)
    if plan.level == "namespaces":
        namespaces.leave_mounts_and_name()
        has_proc = root.build(plan)
    else:
        has_proc = True  # otherwise bubblewrap would have failed
        root.give_scratch()
    namespaces.become_nobody(proc)
    os.close(proc)
    privileges.forbid_gain()
    version = landlock.restrict(root.rules(plan, has_proc))
    privileges.drop_capabilities()
    privileges.set_dumpable(False)
    privileges.die_with_parent(signal.SIGKILL)  # the changes of credentials have cleared it
    privileges.require_peer(peer)
    seccomp.filter_calls(devices=bool(plan.devices))
    return [
        *(
            "user_ns",
            "pid_ns",
            "mount_ns",
            "net_ns",
            "ipc_ns",
            "uts_ns",
            "unprivileged_uid",
            "no_capabilities",
        ),
        *(f"landlock_abi_{version}", "seccomp", "no_new_privs", "rlimits"),
        *(("fresh_proc",) if has_proc else ()),
        *(("bubblewrap",) if plan.level == "bubblewrap" else ()),
    ]


def _be_first_to_go(proc: int) -> None:
    """Tell the kernel to kill the guest before anything of the host's when memory runs out."""
    descriptor = os.open("self/oom_score_adj", os.O_WRONLY, dir_fd=proc)
    os.write(descriptor, b"1000")
    os.close(descriptor)


def start_guest(plan: EntryPlan, become: Become) -> int:
    """Fork, prepare the guest and let it become its program; return its PID, or raise if it failed."""
    read_end, low_end = os.pipe()
    write_end = fcntl.fcntl(low_end, fcntl.F_DUPFD_CLOEXEC, descriptors.FIRST + len(plan.descriptors))
    os.close(low_end)
    child = os.fork()
    if child == 0:
        _prepare_guest(plan, write_end)
        become(plan, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        report = pipe.read().decode()  # empty when the other end was closed by success
    if report:
        os.waitpid(child, 0)
        step, errno, detail = report.split("\0")
        raise kernel.StepFailed(step, int(errno), detail)
    return child


def execute(plan: EntryPlan, status: int) -> None:
    """Become the program by execve, which closes `status`; exit if that fails."""
    try:
        with kernel.step("execve"):
            os.execve(plan.argv[0], plan.argv, plan.environment)  # noqa: S606 - no shell is the point
    except kernel.StepFailed as failure:
        give_up(status, failure)


def _prepare_guest(plan: EntryPlan, status: int) -> None:
    try:
        with kernel.step("session"):
            os.setsid()
            if sys.platform == "linux":
                privileges.die_with_parent(signal.SIGKILL)
            os.chdir(plan.directory)
            os.umask(0o077)
            _forget_signals()
        descriptors.place(plan.descriptors, status)
        rlimits.apply(plan.rlimits)
    except kernel.StepFailed as failure:
        give_up(status, failure)
    except BaseException as error:  # noqa: BLE001 - Forge's own fault must not look like a start
        give_up(status, kernel.StepFailed("start", 0, repr(error)))


def give_up(status: int, failure: kernel.StepFailed) -> NoReturn:
    """Report the failed step over `status`, and end."""
    os.write(status, f"{failure.step}\0{failure.errno}\0{failure.detail}".encode())
    os._exit(127)


def _forget_signals() -> None:
    """Give every signal its default action: ignored ones would survive execve, handled ones reach PID 1."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) != signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _reap_until(main: int, channel: socket.socket, peer: int) -> None:
    """Reap the guest's orphans until the guest itself ends, and report how it ended.

    Also check that the supervisor lives. Its parent death signal doesn't pass a bubblewrap that root started, since
    bubblewrap has given up the right to signal another user.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    kernel.hear_of_ends_only()  # the host stops and continues the guest at each exchange
    while True:
        pid, status, usage = os.wait3(os.WNOHANG)
        if pid == main:
            report_end(channel, status, usage)
            return
        if pid == 0:
            signal.sigtimedwait((signal.SIGCHLD,), _LOOK_S)
            privileges.require_peer(peer)


def report_end(channel: socket.socket, status: int, usage: resource.struct_rusage) -> None:
    """Send the guest's wait status and its resource use, with that of its reaped children."""
    rss_unit = 1 if sys.platform == "darwin" else 1024
    tell(
        channel,
        ended=status,
        cpu_s=usage.ru_utime + usage.ru_stime,
        max_rss_bytes=usage.ru_maxrss * rss_unit,
    )
