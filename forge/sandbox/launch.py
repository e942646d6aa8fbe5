"""Starts one hostile process tree, watches it, and ends it: the only way from the host into a sandbox.

Distrusts the guest in everything it can do to a parent: outlive it, flood its log, exhaust its time, leave orphans,
keep pipes open. Forge's own PID 1 reports the guest's end, not the guest. The caller decides whether a level of
isolation is enough. This file only never claims more than was built.
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
from forge.sandbox import calling_off
from forge.sandbox import confinement as confinements
from forge.sandbox.cgroups import Group
from forge.sandbox.confinement import Bind, Confinement
from forge.sandbox.ending import Exit, exit_of
from forge.sandbox.folders import HeldFolder
from forge.sandbox.freeze import FrozenGuest, any_alive
from forge.sandbox.guest_entry.plan import Level
from forge.sandbox.guest_memory import GuestMemory
from forge.sandbox.isolation import Walls, judge
from forge.sandbox.late_work import LateWork
from forge.sandbox.limits import MIB, Limits
from forge.sandbox.log import Log
from forge.sandbox.memory import LOOK_S, Excess, held_bytes, shows_memory, watch
from forge.sandbox.processor import Work, WorkExcess
from forge.sandbox.reports import Reports, Started, WallFailed
from forge.sandbox.runtime import masked_paths, runtime_binds
from forge.sandbox.zygote import Forked, Zygote

__all__ = ["Bind", "Confinement", "Exit", "Guest", "Limits", "masked_paths", "runtime_binds", "start"]

Supervisor = subprocess.Popen[bytes] | Forked

PIECE_BYTES = 1 << 16
"""Number of bytes of a log that are read at a time: as many as a pipe holds."""
PIPE_READS = 4
"""Number of pieces that are read before a log is shown. A guest that goes on printing can't hold the host there."""
FLOOD_BYTES = 16 * MIB
"""Size of a log in bytes above which the guest is killed. Chosen: four times the longest log that is kept, that of a
profiler. A larger value costs the host more reading."""
_ENTER = str(Path(__file__).resolve().parent / "guest_entry" / "__main__.py")
_START_S = 30.0
"""Seconds that a guest may take to start. Chosen; a start takes milliseconds, and seconds on an overloaded
machine."""
_GRACE_S = 10.0
"""Seconds that a killed tree may take to end. Chosen; the kernel frees gigabytes of a guest's memory in less."""

_READINGS, _READING_PAUSE_S = 100, 0.02
"""Number of attempts to read a guest's memory before EnvironmentUnfit, and the pause between two in seconds. Chosen;
a guest that is ending is gone in less than two seconds."""


class Guest:
    """A running process tree. It is killed when the context ends, and when this process ends in any way."""

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
        self._log_open = True
        self._reading = threading.Lock()
        """Lock for reading the log, and for closing it: the watching thread reads it, and `log` does."""
        os.set_blocking(log_end, False)
        self._log = Log(limits.log_bytes)
        self._scratch = scratch
        self._left_s = limits.wall_s
        self._looked_s = time.monotonic()
        self._asked = True
        self._timed_out = self._flooded = False
        self._excess: Excess | WorkExcess | None = None
        self._group = group
        self._exit: Exit | None = None
        self._gone = threading.Event()
        self._init_pid = reports.init_pid()
        self._frozen = FrozenGuest(self._init_pid) if self._init_pid is not None else None
        self.late_work = LateWork(group, self._frozen)
        self._memory = watch(
            group, self._init_pid or process.pid, limits.total_memory_bytes, scratch=reports.scratch, given=given
        )
        self.isolation: Walls = judge((*reports.started.parts, *group.parts, *self._memory.parts))
        self._work = Work(self._init_pid or process.pid, limits, group.cpu_ns)
        calling_off.began(self)
        threading.Thread(target=self._watch, name=f"guest-{process.pid}", daemon=True).start()

    @property
    def flooded(self) -> bool:
        """Whether the guest wrote more than 16 MiB to its log and was killed for that."""
        return self._flooded

    def poll(self) -> Exit | None:
        """Return how the guest ended, or None while any of its processes is left."""
        return self._exit if self._gone.is_set() else None

    def wait(self, timeout_s: float | None) -> Exit | None:
        """Wait until the whole tree has ended; return None if it hasn't in time."""
        self._gone.wait(timeout_s)
        return self.poll()

    def begin(self) -> None:
        """Count the guest's time from now on: the host waits for its answer."""
        self._work.begin()
        self._asked = True

    def rest(self) -> None:
        """Count no time until the next `begin`: the host wants nothing of the guest."""
        self._asked = False

    def allow(self, more_s: float) -> None:
        """Raise the limits of the guest's work by this many processor seconds."""
        self._work.allow(more_s)

    @property
    def ending(self) -> bool:
        """Whether the host has found a reason to end the guest, or no process of it still runs a program."""
        return self._timed_out or self._flooded or self._excess is not None or not self._lives()

    def _lives(self) -> bool:
        return self._init_pid is None or any_alive(self._init_pid)

    def kill(self) -> None:
        """Kill the whole tree; return when it is gone and reaped."""
        if not self._gone.is_set():
            self._work.count()
        self.end()
        if not self._gone.wait(_GRACE_S):
            self._process.kill()
        self._gone.wait()
        if self._frozen is not None:
            self._frozen.close()

    def freeze(self) -> bool:
        """Stop every process of the guest; return False if one doesn't stop.

        A guest without a namespace of its own isn't stopped.
        """
        return self._frozen is None or self._gone.is_set() or self._frozen.freeze()

    def open_memory(self) -> GuestMemory | None:
        """Open the memory of the stopped guest's only process until it is killed; None for one that isn't stopped."""
        return None if self._frozen is None else self._frozen.open_memory()

    @property
    def stop_waited_ns(self) -> int:
        """Nanoseconds of the last stop in which the guest couldn't stop, since a thread waited for a processor."""
        return 0 if self._frozen is None else self._frozen.stop_waited_ns

    def moved(self) -> str:
        """Return which threads have run since they were stopped, as text; empty if none."""
        return "" if self._frozen is None or self._gone.is_set() else self._frozen.moved()

    def undelayed_ns(self, elapsed_ns: int) -> int:
        """Return the nanoseconds of the last release without those in which its threads waited for a processor."""
        return elapsed_ns if self._frozen is None else self._frozen.undelayed_ns(elapsed_ns)

    @property
    def held_bytes(self) -> int | None:
        """Memory of the guest's processes and its scratch in bytes; None if the machine doesn't show it.

        Raise EnvironmentUnfit if a machine that shows it gives no reading of a guest that lives.
        """
        if self._init_pid is None or not shows_memory():
            return None
        for _ in range(_READINGS):
            held = held_bytes(self._init_pid, self._reports.scratch)
            if held or self._gone.is_set():
                return held
            time.sleep(_READING_PAUSE_S)
        raise EnvironmentUnfit("the memory of a guest that lives couldn't be read: expected RssAnon above 0 in /proc")

    def thaw(self) -> None:
        """Continue the guest."""
        if self._frozen is not None:
            self._frozen.thaw()

    def log(self) -> str:
        """Return what the guest has printed so far: escaped, its start and its end within `limits.log_bytes`."""
        for _ in range(PIPE_READS):  # what was printed before a reply may still lie in the pipe
            if not self._read_log():
                break
        return self._log.text()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    def end(self) -> None:
        """Kill PID 1 of the guest's namespace, and so all its processes; without one, ask the supervisor."""
        if self._gone.is_set():
            return
        if not self._reports.kill_init():
            self._process.terminate()

    def _watch(self) -> None:
        """Read the log, check the limits and wait for the end, in a separate thread until nothing is left."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._log_end, selectors.EVENT_READ)
                selector.register(self._reports, selectors.EVENT_READ)
                while self._reports.open:
                    ready = selector.select(max(0.0, min(self._left_s, LOOK_S)))
                    self._attend(selector, {key.fileobj for key, _ in ready})
                    self._limit_time()
                    self._limit_shares()
        finally:
            self._clean_up()

    def _attend(self, selector: selectors.BaseSelector, ready: set[object]) -> None:
        if self._log_end in ready and self._read_log() == b"":
            selector.unregister(self._log_end)
        if self._reports in ready:
            self._reports.receive()

    def _read_log(self) -> bytes | None:
        """Read one piece of the log; return nothing at its end, and None if there is no more of it yet."""
        with self._reading:
            if not self._log_open:
                return b""
            try:
                data = os.read(self._log_end, PIECE_BYTES)
            except BlockingIOError:
                return None
            self._log.add(data)
        if self._log.seen_bytes > FLOOD_BYTES and not self._flooded:
            self._flooded = True
            self.end()
        return data

    def _limit_time(self) -> None:
        """End a tree for which the host has waited too long by the wall clock."""
        before_s, self._looked_s = self._looked_s, time.monotonic()
        if self._asked or self._timed_out:
            self._left_s -= self._looked_s - before_s
        if self._left_s > 0:
            return
        if self._timed_out:  # the tree should have ended by now
            self._process.kill()
        self._timed_out = True
        self._left_s = _GRACE_S
        self.end()

    def _limit_shares(self) -> None:
        """End a tree that takes too much memory or processor time; a stopped one takes nothing more."""
        if self._excess is None and not (self._frozen is not None and self._frozen.standing):
            self._excess = self._memory.look() or (self._work.look() if self._asked else None)
            if self._excess is not None:
                self.end()

    def _clean_up(self) -> None:
        """Wait for the last process, read the rest of the log, close and remove everything."""
        self.end()  # it has ended, unless a report was unreadable
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reports.wait_for_init()
        while self._read_log() and not self._flooded:
            pass
        with self._reading:
            self._log_open = False
            os.close(self._log_end)
        self._reports.close()
        if self._scratch is not None:
            self._scratch.remove()
        self._excess = self._excess or self._group.excess()
        self._group.remove()
        self._exit = exit_of(
            self._reports.ended, timed_out=self._timed_out, flooded=self._flooded, excess=self._excess
        )
        calling_off.ended(self)
        self._gone.set()


def start(confinement: Confinement, *, isolation: Level, zygote: Zygote | None = None) -> Guest:
    """Start a guest at exactly the level asked for.

    Raise EnvironmentUnfit, with the failed step, if that is impossible, and CalledOff if no work is wanted.

    With a zygote that is still alive, the guest is forked from it; `argv` must then be an interpreter, -I and a
    script. "none" is the same start without walls, for platforms that have nothing better. The caller decides whether
    it is acceptable, and the guest's `isolation` states it in the evidence.
    """
    calling_off.require_wanted()
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
        case Started(parts=parts) if "pid_ns" in parts and not reports.knows_init:
            raise EnvironmentUnfit(
                "the guest's PID 1 is unknown, so it can't be stopped: expected its number in the start's report"
            )
        case Started() if not reports.shows_init:
            raise EnvironmentUnfit(
                "/proc doesn't show the guest's PID 1: it could be neither stopped nor read; "
                "expected a /proc without hidepid"
            )
        case Started():
            return
        case WallFailed(step=step, errno=errno, detail=detail):
            raise EnvironmentUnfit(
                f"the guest never started: step {step!r} failed with errno {errno} ({detail}); "
                "expected a kernel that lets this user build every wall"
            )
        case None:
            os.set_blocking(log_end, False)
            said = Log(4096)
            with contextlib.suppress(BlockingIOError):
                said.add(os.read(log_end, 4096))
            raise EnvironmentUnfit(
                f"the guest never started and no step failed; its log is {said.text()!r}: run it again"
            )


def _abandon(process: Supervisor | None, reports: Reports, scratch: HeldFolder | None) -> None:
    """Clean up after a start that failed."""
    if process is not None:
        if not reports.kill_init():
            process.kill()
        process.wait()
        reports.wait_for_init()
    reports.close()
    if scratch is not None:
        scratch.remove()
