"""Holds one conversation with a guest from the host's side: set up, release, take the time, read the reply.

The host's clock runs from the moment the guest is continued to the moment its reply arrives. At all other times the
guest is stopped (see freeze.py), so it sees no input early. Stopping takes time, which a guest can lengthen. So the
processor time that a guest takes between its reply and its stop is added to the clock's. Any unexpected bytes on the
reply channel are tampering.
"""

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.guest import wire
from forge.sandbox.arena import Arena, Closed, Slot, SlotSet
from forge.sandbox.channel import CLOSED, Channel
from forge.sandbox.freeze import waited_ns
from forge.sandbox.guest_memory import GuestMemory
from forge.sandbox.launch import Exit
from forge.sandbox.limits import GIB, Limits
from forge.sandbox.own_memory import Span
from forge.sandbox.reply import Refused, Returned, parse_reply
from forge.sandbox.stage import SERVE, Stage

next_in_chain = wire.next_in_chain
MOST_IN_CHAIN = wire.MOST_IN_CHAIN
IDLE = wire.IDLE
"""Function index for `Session.chain` that calls nothing."""
LONG_STOP_S = 1.0
"""Seconds that a guest may take to stop without being counted, without waiting for a processor. On a machine at four
times its load, a stop takes less than a tenth of that."""
_FOREIGN_MEMORY = Reason(
    code="STATE_CARRIED",
    message="an output of a timed call lies in memory that others may write: an operand's, a file's or shared "
    "memory. Return a tensor of the call's own",
)
"""Reason for outputs that would change with other memory."""
_WORK_EXCESS: Mapping[str | None, str] = {
    "reply": "one thread of the guest used up {reply_cpu_s:g} s of processor time and gave no answer",
    "thread": "one thread of the guest used up its {thread_cpu_s:g} s of processor time",
    "processor": "the guest's processes used up their {total_cpu_s:g} s of processor time",
    "asleep": "the guest slept for {still_s:g} s: none of its threads wanted a processor",
    "together": "the guests of the candidate used up their {shared.cpu_s:g} s of processor time together",
    "waited": "the host waited for the candidate's guests for {shared.wall_s:g} s in all, and the machine may be the "
    "reason",
    "still": "the guest did next to nothing for {still_s:g} s, and the machine may be the reason",
}
"""Message of a refusal by each limit of a guest's work."""
MOST_STOPPING_S = 8.0
"""Seconds that all longer stops of a guest may take together. A child can delay its parent for seconds at a time."""


@dataclass(frozen=True)
class GuestFunction:
    """A function for the guest to load: its file, its name and how it is wrapped."""

    file: str
    entry_point: str
    wrap: str = "none"


@dataclass(frozen=True, kw_only=True)
class Window:
    """A timed unit: replays of a graph that holds one call on each set."""

    repeats: int = 1
    rotation_offset: int
    """Number of places by which the sets' contents have moved since they were written; see forge/guest/clock.py."""
    copied: int | None = None
    """Index of the set whose operands are then copied into the arena; None for none."""
    again: bool = False
    """Whether the last window's graph is replayed unchanged, on unchanged operands."""
    resident: bool = False
    """Whether the operands stay in the last-level cache after they are written, instead of being driven out."""


class Session:
    """A guest that has loaded its functions; use as a context manager."""

    def __init__(
        self,
        stage: Stage,
        arena: Arena,
        *,
        limits: Limits,
        threads: int,
    ) -> None:
        limits = stage.bounded(limits)
        self._stage = stage
        self._arena = arena
        self._threads = threads
        self._limits = limits
        self._stopping_s = 0.0
        self._untold = b""
        """Layout that is sent in front of the next command: an exchange costs as much as a small call."""
        self.undelayed_ns = 0
        """Nanoseconds of the last calls without those in which the guest or this thread waited for a processor."""
        self.patience_s: float | None = None
        """Seconds by the wall clock for each reply, at most; None leaves it to the guest's limits."""
        self._memory: GuestMemory | None = None
        self._channel = Channel(stage, SERVE, arena, limits=limits, threads=threads)
        self._guest = self._channel.guest

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the guest with everything it has started, and close the channel."""
        self._channel.close()

    def end(self) -> None:
        """Kill the guest from any thread; the exchange in hand is refused."""
        self._guest.end()

    @property
    def held_bytes(self) -> int | None:
        """Memory of the guest's processes and its scratch in bytes; None if the machine doesn't show it."""
        return self._guest.held_bytes

    def allow(self, more_s: float) -> None:
        """Raise the limits of the guest's work by this many processor seconds."""
        self._guest.allow(more_s)

    def load(self, functions: tuple[GuestFunction, ...]) -> Returned | Refused:
        """Let the guest import the functions in this order, and wrap them if asked.

        Raise EnvironmentUnfit if the guest ends before the first line of a candidate has run.
        """
        started = self._set_up({"threads": self._threads, "device": self._stage.device})
        if isinstance(started, Refused):
            return _unstarted(started)
        if self._stage.stands_still:
            self._memory = self._guest.open_memory()  # now, as no line of a candidate has run yet
        directory = self._stage.candidate_directory
        listed = [
            {
                "path": f"{directory}/{f.file}",
                "module": f.file.removesuffix(".py"),
                "entry_point": f.entry_point,
                "wrap": f.wrap,
            }
            for f in functions
        ]
        return self._set_up(
            {
                "functions": listed,
                "arena_bytes": self._arena.size_bytes,
                "candidate_directory": directory,
            }
        )

    def lay_out(
        self,
        sets: tuple[SlotSet, ...],
        *,
        scalars: int,
        closed: tuple[Closed, ...] = (),
        return_inputs: bool = False,
        still: AbstractSet[int] = frozenset(),
        weights: AbstractSet[int] = frozenset(),
        far: AbstractSet[int] = frozenset(),
        apart: bool = False,
    ) -> None:
        """Say where the operands lie, and which pages the guest's harness protects until the next layout.

        Three sets hold positions of inputs. `still` inputs aren't rotated, and `weights` are those that a module
        would keep. The guest maps `far` inputs more than 2^32 bytes from the others. With `apart`, the outputs of one
        call may not share memory. The guest is told with the next command, whose answer says if it has no room. The
        candidate isn't called then, so that is no exception that it raised.
        """
        described = [
            {"inputs": [s.describe() for s in one.inputs], "outputs": [s.describe() for s in one.outputs]}
            for one in sets
        ]
        pages = [[one.start, one.end, one.access] for one in closed]
        settings = {"scalars": scalars, "closed": pages, "return_inputs": return_inputs, "apart": apart}
        body = {"sets": described, "still": sorted(still), "weights": sorted(weights), "far": sorted(far), **settings}
        self._untold = wire.pack_command(wire.SETUP, json.dumps(body).encode())

    def room(self) -> Returned | Refused:
        """Return whether the guest has room for the layout, before its operands are written."""
        return self._set_up({"room": True})

    def release(
        self,
        function: int,
        first: int,
        count: int,
        scalars: tuple[float, ...],
        *,
        cycles: int = 1,
        retain: bool = False,
        ways: wire.Ways = wire.NO_WAYS,
        filling: int = 0,
    ) -> Returned | Refused:
        """Run one function on sets `first` to `first + count`, in turn, `cycles` times each."""
        call_id = int.from_bytes(os.urandom(8), "big")
        padded = (*scalars, *(0.0,) * (4 - len(scalars)))
        body = wire.GO_BODY.pack(call_id, function, first, count, cycles, int(retain), ways, filling, *padded)
        return self._exchange(wire.pack_command(wire.GO, body), call_id=call_id, calls=count * cycles)

    def chain(self, function: int, first: int, count: int, scalars: tuple[float, ...]) -> Returned | Refused:
        """Run one function on `count` sets, beginning with `first`; each call's outputs choose the next set.

        The outputs stay in the guest's memory; see `take`. A look around comes before each chain. Raise
        EnvironmentUnfit if the host may not read the guest's memory.
        """
        if self._memory is not None:
            self._memory.require_readable()
        call_id = int.from_bytes(os.urandom(8), "big")
        padded = (*scalars, *(0.0,) * (4 - len(scalars)))
        body = wire.CHAIN_BODY.pack(call_id, function, first, count, int(self._memory is None), *padded)
        return self._exchange(wire.pack_command(wire.CHAIN, body), call_id=call_id, calls=count)

    def take(self, outputs: Sequence[Slot], addresses: Sequence[int]) -> Refused | None:
        """Copy one call's outputs from the stopped guest into the arena, if it didn't copy them itself.

        Return a refusal if they don't lie where the guest says.
        """
        if self._memory is None or (
            len(addresses) == len(outputs)
            and all(map(self._memory.read_into, map(self._arena.memory_of, outputs), addresses))
        ):
            return None
        if self._guest.ending:
            return self._gone()
        reason = Reason(code="TAMPERING", message="a reply says that outputs lie where no memory is")
        return Refused(reason, self._guest.log())

    def require_own_memory(self, spans: Sequence[Span]) -> Refused | None:
        """Refuse outputs of a chain in memory that is an operand's or a file's, or that the guest may share.

        Copies that a guest made itself before it was stopped aren't looked at.
        """
        if self._memory is None or self._memory.are_own(spans):
            return None
        return self._gone() if self._guest.ending else Refused(_FOREIGN_MEMORY, self._guest.log())

    def look_around(self) -> Returned | Refused:
        """Let the guest read what the next chain must leave unchanged, before it has the chain's inputs.

        It takes as long as some calls, so it has no part in a chain's time.
        """
        return self._set_up({"surroundings": "look"})

    def compare_surroundings(self) -> Returned | Refused:
        """Let the guest compare them after a chain, once the host has read the chain's outputs."""
        return self._set_up({"surroundings": "compare"})

    def capture(self, scalars: tuple[float, ...]) -> bytes | Refused:
        """Let the guest list one call of its first function as a launch plan; the list is untrusted."""
        directory = self._stage.candidate_directory
        answer = self._set_up({"capture": True, "scalars": list(scalars), "candidate_directory": directory})
        return answer if isinstance(answer, Refused) else self._arena.untrusted_bytes(answer.completed)

    def choose(self, number: int, way: str, *, described: bool) -> bytes | Refused:
        """Say which configuration autotuned kernels use from now on; return untrusted what they used, if asked."""
        answer = self._set_up({"choose": number, "way": way, "described": described})
        return answer if isinstance(answer, Refused) else self._arena.untrusted_bytes(answer.completed)

    def count_operators(self, scalars: tuple[float, ...], calls: int) -> bytes | Refused:
        """Let torch's profiler count in the guest over calls on the first set; the table is untrusted."""
        answer = self._set_up({"count_operators": calls, "scalars": list(scalars)})
        return answer if isinstance(answer, Refused) else self._arena.untrusted_bytes(answer.completed)

    def time(self, function: int, window: Window, scalars: tuple[float, ...]) -> Returned | Refused:
        """Let a trusted guest time one function over all sets, by graph replay; the answer has its `device_ns`."""
        call_id = int.from_bytes(os.urandom(8), "big")
        padded = (*scalars, *(0.0,) * (4 - len(scalars)))
        copied = wire.NO_SET if window.copied is None else window.copied
        shape = (window.repeats, window.rotation_offset, copied, int(window.again), int(window.resident))
        body = wire.TIME_BODY.pack(call_id, function, *shape, *padded)
        return self._exchange(wire.pack_command(wire.TIME, body), call_id=call_id, calls=None)

    def finish(self) -> tuple[Exit, str]:
        """Send no more commands, and let the guest end within its limits; return how it ended, and its log."""
        self._guest.begin()
        self._guest.thaw()
        self._channel.send_no_more()
        ended = self._guest.wait(None)
        assert ended is not None, "a wait without an end returns when the guest has ended"
        return ended, self._guest.log()

    def _set_up(self, body: dict[str, object]) -> Returned | Refused:
        return self._exchange(wire.pack_command(wire.SETUP, json.dumps(body).encode()), call_id=0, calls=None)

    def _exchange(self, command: bytes, *, call_id: int, calls: int | None) -> Returned | Refused:
        if self._channel.is_readable(0):
            return self._early()
        if moved := self._guest.moved():
            reason = Reason(code="TAMPERING", message=f"the guest went on running while it was stopped: {moved}")
            return Refused(reason, self._guest.log())
        waited_before_ns = waited_ns()
        self._guest.begin()
        started_ns = time.perf_counter_ns()
        self._guest.thaw()
        if not self._channel.send(self._untold + command):
            return self._gone()
        self._untold = b""
        untrusted = self._channel.await_reply(self.patience_s)
        self._guest.late_work.begin()  # before the clock is read, so that no work falls between the two
        elapsed_ns = time.perf_counter_ns() - started_ns
        host_waited_ns = waited_ns() - waited_before_ns
        self._guest.rest()
        if untrusted is None:
            return self._late()
        if not untrusted:
            return self._gone()
        if self._stage.stands_still and (unstopped := self._stop()):
            return unstopped
        late_ns = self._guest.late_work.taken_ns() if self._stage.stands_still else 0
        if calls is not None:  # a look at the surroundings follows a chain, and is no part of it
            self.undelayed_ns = self._guest.undelayed_ns(elapsed_ns - host_waited_ns)
        took_ns, interpreted = elapsed_ns + max(0, late_ns), self._stage.interpreted
        answer = parse_reply(untrusted, call_id=call_id, elapsed_ns=took_ns, calls=calls, interpreted=interpreted)
        # the log is rendered only for a refusal: a guest could make that slow, and use the time after its reply
        return replace(answer, log=self._guest.log()) if isinstance(answer, Refused) else answer

    def _stop(self) -> Refused | None:
        """Stop the guest. The time that stopping takes is limited over the whole session.

        Time in which the host or a thread of the guest waits for a processor doesn't count. A guest that didn't stop
        for that reason alone is left without a verdict.
        """
        started_ns, waited_before_ns = time.perf_counter_ns(), waited_ns()
        stopped = self._guest.freeze()
        host_waited_ns = waited_ns() - waited_before_ns
        took_s = (time.perf_counter_ns() - started_ns - host_waited_ns - self._guest.stop_waited_ns) / 1e9
        self._stopping_s += took_s if took_s > LONG_STOP_S else 0.0
        if stopped and self._stopping_s <= MOST_STOPPING_S:
            return None
        reason = Reason(code="RESOURCE_ABUSE", message="the guest can't be stopped")
        return Refused(reason, self._guest.log(), from_load=took_s <= LONG_STOP_S)

    def _early(self) -> Refused:
        if not self._channel.untrusted_reply():
            return self._gone()
        reason = Reason(code="TAMPERING", message="the guest wrote to the reply channel without being asked")
        return Refused(reason, self._guest.log())

    def _late(self) -> Refused:
        self._guest.kill()
        reason = Reason(code="TIMEOUT", message=f"no reply within {self.patience_s:g} s")
        return Refused(reason, self._guest.log(), from_load=True)

    def _gone(self) -> Refused:
        ended = self._channel.end()
        if ended is None:
            self._guest.kill()
            return Refused(CLOSED, self._guest.log())
        reason, from_load = exit_reason(ended, self._limits), ended.from_load
        return Refused(reason, self._guest.log(), signal=ended.signal, from_load=from_load)


def _unstarted(refused: Refused) -> Refused:
    """Return tampering, and what only the clock ended; raise EnvironmentUnfit for any other end of a start."""
    if refused.from_load or refused.reason.code == "TAMPERING":
        return refused
    said = refused.log.strip().rpartition("\n")[2][:300]
    raise EnvironmentUnfit(
        f"a guest couldn't import torch ({refused.reason.message}): {said or 'it said nothing'}",
        hint="forge doctor, or raise memory_limit_bytes in policy.toml",
    )


def exit_reason(ended: Exit, limits: Limits) -> Reason:
    """Return why a guest has ended that should still run."""
    if ended.flooded:
        return Reason(code="RESOURCE_ABUSE", message="the candidate wrote more output than the log may have")
    if ended.excess in _WORK_EXCESS:
        return Reason(code="TIMEOUT", message=_WORK_EXCESS[ended.excess].format(**vars(limits)))
    if ended.timed_out:
        message = f"no answer after {limits.wall_s:g} s by the clock, within all other limits"
        return Reason(code="TIMEOUT", message=message)
    if ended.excess == "total":
        return Reason(
            code="OUT_OF_MEMORY",
            message="the candidate's processes took more memory together than the "
            f"{limits.total_memory_bytes / GIB:.3g} GiB allowed",
        )
    if ended.excess == "machine":
        return Reason(code="OUT_OF_MEMORY", message="the machine ran out of memory while the candidate ran")
    number = ended.signal
    if number == signal.SIGSYS:
        return Reason(code="SANDBOX_VIOLATION", message="the candidate made a system call that isn't allowed")
    if number == signal.SIGXCPU:
        return Reason(code="TIMEOUT", message=f"the guest used up its {limits.cpu_s} s of processor time")
    if number is not None:
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        return Reason(code="RUNTIME_ERROR", message=f"the candidate's process was ended by {name}")
    return Reason(code="RUNTIME_ERROR", message=f"the candidate ended its process with status {ended.returncode}")
