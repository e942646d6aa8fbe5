"""Start one hostile process tree, watch it, and end it: the only way from the host into a sandbox.

Distrusts the guest in everything it can do to a parent: outlive it, flood its log, exhaust its clock, leave
orphans, keep pipes open. What is learnt about its end comes from our own PID 1, not from the guest. Whether a
level of isolation is enough is the caller's policy; this file only refuses to pretend.
"""

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from forge.errors import EnvironmentUnfit
from forge.sandbox import confinement as confinements
from forge.sandbox.cgroups import Group
from forge.sandbox.confinement import Bind, Confinement
from forge.sandbox.ending import Exit, exit_of
from forge.sandbox.enter.plan import Level
from forge.sandbox.folders import HeldFolder
from forge.sandbox.freeze import Frozen
from forge.sandbox.isolation import Isolation, judge
from forge.sandbox.limits import MIB, Limits
from forge.sandbox.log import Log
from forge.sandbox.memory import LOOK_S, Excess, held_bytes, watch
from forge.sandbox.processor import Budget
from forge.sandbox.reports import Failed, Reports, Started
from forge.sandbox.runtime import masked_paths, runtime_binds
from forge.sandbox.zygote import Forked, Zygote

__all__ = ["Bind", "Confinement", "Exit", "Guest", "Limits", "masked_paths", "runtime_binds", "start"]

Supervisor = subprocess.Popen[bytes] | Forked

FLOOD_BYTES = 16 * MIB
_ENTER = str(Path(__file__).resolve().parent / "enter" / "__main__.py")
_START_S = 30.0
_GRACE_S = 10.0


class Guest:
    """A running tree. Leaving the context kills it; so does the end of this process, however it ends."""

    def __init__(
        self,
        process: Supervisor,
        reports: Reports,
        *,
        log_end: int,
        limits: Limits,
        scratch: HeldFolder | None,
        group: Group,
        given: tuple[int, ...],
    ) -> None:
        self._process = process
        self._reports = reports
        self._log_end = log_end
        self._log = Log(limits.log_bytes)
        self._scratch = scratch
        self._deadline_s = time.monotonic() + limits.wall_s
        self._timed_out = self._flooded = False
        self._excess: Excess | None = None
        self._group = group
        self._exit: Exit | None = None
        self._gone = threading.Event()
        self._init_pid = reports.init_pid()
        self._frozen = Frozen(self._init_pid) if self._init_pid is not None else None
        self._memory = watch(
            group, self._init_pid or process.pid, limits.total_memory_bytes, scratch=reports.scratch, given=given
        )
        self.isolation: Isolation = judge((*reports.started.parts, *group.parts, *self._memory.parts))
        self._budget = Budget(self._init_pid or process.pid, limits.total_cpu_s)
        threading.Thread(target=self._watch, name=f"guest-{process.pid}", daemon=True).start()

    @property
    def flooded(self) -> bool:
        """Whether it wrote more than 16 MiB to its log and was killed for that."""
        return self._flooded

    def poll(self) -> Exit | None:
        """Return how it ended, or None while anything of it is left."""
        return self._exit if self._gone.is_set() else None

    def wait(self, timeout_s: float) -> Exit | None:
        """Wait for the whole tree to be gone; None if it isn't in time."""
        self._gone.wait(timeout_s)
        return self.poll()

    def kill(self) -> None:
        """End the whole tree and return when it is gone and reaped."""
        self._end_tree()
        if not self._gone.wait(_GRACE_S):
            self._process.kill()
        self._gone.wait()
        if self._frozen is not None:
            self._frozen.close()

    def freeze(self) -> bool:
        """Stop everything it runs; False if it won't stand still. Without a namespace of its own it isn't stopped."""
        return self._frozen is None or self._gone.is_set() or self._frozen.freeze()

    def moved(self) -> str:
        """What of it has run since it was stopped; empty if nothing."""
        return "" if self._frozen is None or self._gone.is_set() else self._frozen.moved()

    @property
    def held_bytes(self) -> int:
        """Memory of its processes and its scratch; 0 where it has no namespace of its own."""
        return held_bytes(self._init_pid, self._reports.scratch) if self._init_pid is not None else 0

    def thaw(self) -> None:
        """Let it go on."""
        if self._frozen is not None:
            self._frozen.thaw()

    def log(self) -> str:
        """Return what it printed so far: escaped, its beginning and end within `limits.log_bytes`."""
        return self._log.text()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def _end_tree(self) -> None:
        """Kill PID 1 of its namespace, and so everything in it; without one, ask the supervisor."""
        if self._gone.is_set():
            return
        if not self._reports.kill_init():
            self._process.terminate()

    def _watch(self) -> None:
        """Drain, time and await the tree; runs in a thread of its own until nothing is left."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._log_end, selectors.EVENT_READ)
                selector.register(self._reports, selectors.EVENT_READ)
                while self._reports.open:
                    patience_s = max(0.0, self._deadline_s - time.monotonic())
                    ready = selector.select(min(patience_s, LOOK_S))
                    self._attend(selector, {key.fileobj for key, _ in ready})
                    self._keep_time()
                    self._keep_shares()
        finally:
            self._bury()

    def _attend(self, selector: selectors.BaseSelector, ready: set[object]) -> None:
        if self._log_end in ready and not self._drain():
            selector.unregister(self._log_end)
        if self._reports in ready:
            self._reports.receive()

    def _drain(self) -> bool:
        """Read one piece of the log; False at its end."""
        data = os.read(self._log_end, 1 << 16)
        self._log.add(data)
        if self._log.seen_bytes > FLOOD_BYTES and not self._flooded:
            self._flooded = True
            self._end_tree()
        return bool(data)

    def _keep_time(self) -> None:
        if time.monotonic() < self._deadline_s:
            return
        if self._timed_out:  # it should have been gone by now
            self._process.kill()
        self._timed_out = True
        self._deadline_s = time.monotonic() + _GRACE_S
        self._end_tree()

    def _keep_shares(self) -> None:
        """End a tree that takes too much memory or processor time; one that stands still takes nothing."""
        if self._excess is None and not (self._frozen is not None and self._frozen.standing):
            self._excess = self._memory.look() or ("processor" if self._budget.spent() else None)
            if self._excess is not None:
                self._end_tree()

    def _bury(self) -> None:
        """Wait for the last process, read the last words, close and remove everything."""
        self._end_tree()  # it has ended, unless what we read made no sense
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reports.wait_for_init()
        os.set_blocking(self._log_end, False)
        with contextlib.suppress(BlockingIOError):
            while self._drain() and not self._flooded:
                pass
        os.close(self._log_end)
        self._reports.close()
        if self._scratch is not None:
            self._scratch.remove()
        self._excess = self._excess or self._group.excess()
        self._group.remove()
        self._exit = exit_of(
            self._reports.ended, timed_out=self._timed_out, flooded=self._flooded, excess=self._excess
        )
        self._gone.set()


def start(confinement: Confinement, *, isolation: Level, zygote: Zygote | None = None) -> Guest:
    """Start a guest at exactly the level asked for; raises EnvironmentUnfit, with the step, where that fails.

    With a zygote it is forked from there, if that is still alive; `argv` must then be an interpreter, -I, a script.
    "none" is the same start without walls, for platforms that have nothing better: the caller decides whether it
    is acceptable, and the guest's `isolation` says so in the evidence.
    """
    scratch = HeldFolder("forge-guest-") if isolation == "none" else None
    process: Supervisor | None = None
    group: Group | None = None
    ours, theirs = socket.socketpair()
    log_end, log_input = os.pipe()
    reports = Reports(ours)
    try:
        plan = confinements.plan(confinement, isolation, str(scratch.path) if scratch else confinements.SCRATCH)
        given = (theirs.fileno(), log_input, *confinement.descriptors)
        process = zygote.fork(given) if zygote is not None else None
        process = process or _spawn(theirs, log_input, confinement.descriptors)
        theirs.close()
        os.close(log_input)
        log_input = -1
        group = Group(process.pid, confinement.limits)
        reports.send(plan)
        _await_start(reports, log_end)
        return Guest(
            process,
            reports,
            log_end=log_end,
            limits=confinement.limits,
            scratch=scratch,
            group=group,
            given=confinement.descriptors,
        )
    except BaseException:
        _abandon(process, reports, scratch)
        if group is not None:
            group.remove()
        theirs.close()
        _close(log_end, log_input)
        raise


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)


def _spawn(channel: socket.socket, log_input: int, descriptors: tuple[int, ...]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", _ENTER, str(channel.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=log_input,
        stderr=log_input,
        env={},
        cwd="/",
        pass_fds=(channel.fileno(), *descriptors),
        start_new_session=True,
    )


def _await_start(reports: Reports, log_end: int) -> None:
    match reports.await_start(_START_S):
        case Started():
            return
        case Failed(step=step, errno=errno, detail=detail):
            raise EnvironmentUnfit(
                f"the guest never started: step {step!r} failed with errno {errno} ({detail}); "
                "expected a kernel that lets this user build every wall"
            )
        case None:
            os.set_blocking(log_end, False)
            said = Log(4096)
            with contextlib.suppress(BlockingIOError):
                said.add(os.read(log_end, 4096))
            raise EnvironmentUnfit(f"the guest never started, and no step said why: {said.text()!r}")


def _abandon(process: Supervisor | None, reports: Reports, scratch: HeldFolder | None) -> None:
    """Leave nothing behind of a start that failed."""
    if process is not None:
        if not reports.kill_init():
            process.kill()
        process.wait()
        reports.wait_for_init()
    reports.close()
    if scratch is not None:
        scratch.remove()
