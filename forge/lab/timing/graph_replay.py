"""Device time by graph replay: paired, interleaved, over fresh launchers and contexts.

For GPU candidates with a launch plan. A round times every side once, in an order drawn anew, each by one window of
its own graph over the same operands, which are others in each round. Half of the windows of the candidate and of the
promoted kernel are judged, drawn at random, by one set each, also drawn at random. After the rounds, windows like
those that were timed have the values that gates ask in half of their sets, and are judged as well. The launcher's
events are believed inside the host's own envelope: the slope of the host's time over two numbers of replays.
"""

import random
import statistics
from dataclasses import dataclass

from forge.domain.device import Ceilings, DeviceState
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.finding import Failed
from forge.lab.job import Job, Progress
from forge.lab.observed import Case
from forge.lab.parallel import each
from forge.lab.timing.blocks import Blocks
from forge.lab.timing.cpu_processes import CANDIDATE, PROMOTED, RivalFailedError
from forge.lab.timing.gpu_processes import DeviceGuests, DeviceSide, open_device_guests, sets_in_turn
from forge.lab.timing.roofline import write_back_ns
from forge.lab.timing.slope import hard_kinds
from forge.sandbox.plans import Captured
from forge.sandbox.reply import Returned
from forge.sandbox.session import Window

WARM_UP_WINDOWS = 4
ENVELOPE = 0.03
"""The host's slope and the device's events may differ by so much, or by twice the spread of the host's own."""
BETWEEN_REPLAYS_NS = 5_000
"""And by a graph's own start, which lies between two replays and not between the events: 1 to 5 us on an H200, which
is more than the envelope where a window takes less than 0.1 ms."""
JUDGED_SHARE = 0.5
"""Of the candidate's timed windows, by one set of each, which of both by the host's lot: device code can't know, and
so can't be right there alone. One set each of many windows finds more than many sets of a few: of 24 rounds in five
pairs 65 are asked, and a candidate that skips one call in twenty, however spread, is missed with a chance of 0.95^65,
4 %; the confirmation asks as many again."""
HARD_WINDOWS = 6
"""Number of judged windows per pair with the values that gates ask. Of five pairs and a confirmation, sixty: one kind
of ten that is answered wrongly is missed with a chance of 0.9^60, 0.2 %."""
HARD_DRAWN = 16
"""Number of different sets of such values. Drawing one takes long, and a window has up to 512 sets."""
_SLOPE_WINDOWS = 3
_SLOPE_NS = 30_000_000


@dataclass(frozen=True, kw_only=True)
class Replays:
    """One attempt's raw samples: per process pair, per round, per side, the window's nanoseconds."""

    calls: dict[str, int]
    """Calls in one window of each side."""
    pairs: tuple[tuple[dict[str, int], ...], ...]
    host_ratio: tuple[float, ...]
    """Per pair, the candidate's time by the host's slope, over its time by the device's events."""
    sets: int
    set_bytes: int
    """Inputs and outputs of one call."""
    states: tuple[DeviceState, ...]
    """Before the first and after the last block, where the driver can be asked."""
    blocks: int
    dropped: int
    """Blocks left out on all sides, since the device was shared or its clocks were held back."""
    device_ns: int
    """All windows together."""

    def per_call_ns(self, side: str) -> list[list[float]]:
        """A side's time per call, by pair and round."""
        return [[measured[side] / self.calls[side] for measured in rounds] for rounds in self.pairs]

    @property
    def sides(self) -> tuple[str, ...]:
        """What was measured."""
        return tuple(sorted(self.calls))


def measure_replays(
    job: Job,
    captured: Captured,
    rival: Captured | None,
    *,
    ceilings: Ceilings,
    rng: random.Random,
    progress: Progress,
) -> Replays | Failed:
    """Time a plan and its baselines over fresh pairs of processes.

    A promoted kernel that answers wrongly is left out, and measuring begins anew. Raise EnvironmentUnfit if another
    baseline fails.
    """
    try:
        return _measure(job, captured, rival, ceilings=ceilings, rng=rng, progress=progress)
    except RivalFailedError as wrong:
        progress(f"the promoted kernel is left out, for it failed while it was timed: {wrong}")
        return _measure(job, captured, None, ceilings=ceilings, rng=rng, progress=progress)


def _measure(
    job: Job,
    captured: Captured,
    rival: Captured | None,
    *,
    ceilings: Ceilings,
    rng: random.Random,
    progress: Progress,
) -> Replays | Failed:
    pairs: list[_Pair] = []
    cases: list[Case] = []
    with open_device_guests(job, captured, rival, progress=progress) as opened:
        for number, guests in enumerate(opened):
            progress(f"process pair {number + 1} of {job.policy.process_pairs}")
            cases = cases or _drawn(guests)
            left_ns = write_back_ns(len(cases) * job.operation.written_bytes(job.shape, job.dtype), ceilings)
            pair = _Pair(job, guests, cases, rng, left_ns=left_ns)
            failed = pair.measure()
            if failed is not None:
                return failed
            pairs.append(pair)
    dropped = sum(pair.blocks.dropped for pair in pairs)
    _require_quiet(pairs, job.policy.most_dropped)
    states = [state for pair in pairs for state in pair.blocks.states]
    return Replays(
        calls=dict.fromkeys(guests.sides, len(cases)),
        pairs=tuple(tuple(pair.blocks.rounds) for pair in pairs),
        host_ratio=tuple(pair.host_ratio for pair in pairs),
        sets=len(cases),
        set_bytes=guests.set_bytes,
        states=(states[0], states[-1]) if states else (),
        blocks=sum(pair.blocks.count for pair in pairs),
        dropped=dropped,
        device_ns=sum(pair.device_ns for pair in pairs),
    )


def _drawn(guests: DeviceGuests) -> list[Case]:
    """The operands of every set. A round moves their contents on, so that none is timed on what another was."""
    kernel = guests.sides[CANDIDATE].kernel
    return kernel.cases(kernel.shape, ["normal"] * sets_in_turn(guests.set_bytes))


def clocks_agree(
    slope_ns: float, by_events_ns: float, window_ns: float, allowed: float, *, left_ns: float = 0.0
) -> bool:
    """Whether the host's time for a replay is what events said of it, and no more than they said of the windows.

    `left_ns` is what it takes to write what a window leaves in the cache: of replays, each waits for the one before.
    """
    most_ns = min((1 + allowed) * by_events_ns, (1 + allowed) * window_ns + left_ns) + BETWEEN_REPLAYS_NS
    return (1 - allowed) * by_events_ns <= slope_ns <= most_ns


def _require_quiet(pairs: "list[_Pair]", most_dropped: float) -> None:
    """Raise EnvironmentUnfit where too many blocks were left out, or all of one pair's."""
    dropped, count = sum(pair.blocks.dropped for pair in pairs), sum(pair.blocks.count for pair in pairs)
    if dropped <= most_dropped * count and all(pair.blocks.rounds for pair in pairs):
        return
    why = "; ".join(sorted({reason for pair in pairs for reason in pair.blocks.reasons}))
    raise EnvironmentUnfit(
        f"{dropped} of {count} blocks can't be used ({why}): no verdict on this device now",
        hint="end what else runs on the GPU, let it cool, and measure again",
    )


class _Pair:
    """One set of fresh guests being measured."""

    def __init__(
        self, job: Job, guests: DeviceGuests, cases: list[Case], rng: random.Random, *, left_ns: float
    ) -> None:
        self._job = job
        self._guests = guests
        self._rng = rng
        self._cases = cases
        self._left_ns = left_ns
        self.host_ratio = 1.0
        self.device_ns = 0
        self.blocks = Blocks(job.gpu)

    def measure(self) -> Failed | None:
        """Every round of every side."""
        for refused in each(lambda kernel: kernel.fill(self._cases), self._guests.kernels, few=1):
            if refused is not None:
                raise EnvironmentUnfit("a timed guest couldn't lay out its operands: the device may be out of memory")
        for side in [*self._guests.sides] * WARM_UP_WINDOWS:
            warmed = self._window(side)
            if isinstance(warmed, Failed):
                return warmed
        for _ in range(self._job.policy.replay_rounds):
            measured: dict[str, int] = {}
            order, roll = list(self._guests.sides), self._rng.randrange(1, 2**31)
            self._rng.shuffle(order)
            for side in order:
                judged = side in self._judged_sides and self._rng.random() < JUDGED_SHARE
                timed = self._window(side, roll=roll, judged=judged)
                if isinstance(timed, Failed):
                    return timed
                measured[side] = timed.device_ns
            self.blocks.add({side: measured[side] for side in self._guests.sides})
        self.blocks.close()
        return self._hold_against_the_host() or self._judge_hard_values()

    @property
    def _judged_sides(self) -> tuple[str, ...]:
        return tuple(side for side in (CANDIDATE, PROMOTED) if side in self._guests.sides)

    def _window(
        self, side: str, *, roll: int = 0, repeats: int = 1, judged: bool = False, again: bool = False
    ) -> Returned | Failed:
        """Time one window; where it is judged, a wrong answer fails as a call does that isn't answered."""
        one: DeviceSide = self._guests.sides[side]
        copied = self._rng.randrange(len(self._cases)) if judged else None
        window = Window(repeats=repeats, roll=roll, copied=copied, again=again)
        timed = one.kernel.time(one.function, window, self._cases)
        failed = timed if isinstance(timed, Failed) else one.kernel.first_wrong(timed[1])
        if failed is not None and side == PROMOTED:
            raise RivalFailedError(failed)
        if failed is not None and not one.candidates:
            raise EnvironmentUnfit(
                f"the side {side!r} failed while it was timed: {failed.reason.message}; {failed.log[-300:]}"
            )
        if failed is not None:
            return failed
        assert not isinstance(timed, Failed), "taken as failed above"
        if timed[0].device_ns <= 0:
            raise EnvironmentUnfit(f"the side {side!r} took no time by the device's events")
        self.device_ns += timed[0].device_ns
        return timed[0]

    def _hold_against_the_host(self) -> Failed | None:
        """The host's slope for the candidate against its events; beyond the envelope one of the two is wrong.

        Both over the same replays, since a window finds another cache: nothing in it is left to be written, where a
        replay follows on one that left some.
        """
        if not self.blocks.rounds:
            return None
        window_ns = statistics.median(measured[CANDIDATE] for measured in self.blocks.rounds)
        more = max(1, round(_SLOPE_NS / window_ns))
        times: dict[int, list[int]] = {1: [], 1 + more: []}
        replayed_ns: list[int] = []
        for _ in range(_SLOPE_WINDOWS):
            for repeats, taken in times.items():
                timed = self._window(CANDIDATE, repeats=repeats, again=True)
                if isinstance(timed, Failed):
                    return timed
                taken.append(timed.elapsed_ns)
                replayed_ns.append(timed.device_ns)
        slope_ns = (min(times[1 + more]) - min(times[1])) / more
        spread = (statistics.median(times[1 + more]) - min(times[1 + more])) / (more * window_ns)
        by_events_ns = statistics.median(replayed_ns)
        self.host_ratio = slope_ns / by_events_ns
        allowed = max(ENVELOPE, 2 * spread)
        if clocks_agree(slope_ns, by_events_ns, window_ns, allowed, left_ns=self._left_ns):
            return None
        message = (
            f"the host's clock says {slope_ns:.0f} ns a replay, {self.host_ratio:.3f} times what the device's events "
            f"say, allowed {1 - allowed:.2f} to {1 + allowed:.2f} and {BETWEEN_REPLAYS_NS} ns; by events a window "
            f"took {window_ns:.0f} ns, and left what takes {self._left_ns:.0f} ns to be written"
        )
        return Failed(
            reason=Reason(code="CLOCK_DISAGREES", message=message), observed=message, threshold="both agree"
        )

    def _judge_hard_values(self) -> Failed | None:
        """Windows like those that were timed, in which half of the sets have values that gates ask."""
        kernel = self._guests.sides[CANDIDATE].kernel
        kinds = hard_kinds(kernel)
        hard = kernel.cases(kernel.shape, [self._rng.choice(kinds) for _ in range(HARD_DRAWN)])
        self._cases = [self._rng.choice(hard) if self._rng.random() < 0.5 else case for case in self._cases]
        for side in self._judged_sides:
            if self._guests.sides[side].kernel.fill(self._cases) is not None:
                raise EnvironmentUnfit("a timed guest couldn't lay out its operands: the device may be out of memory")
            for _ in range(HARD_WINDOWS):
                timed = self._window(side, judged=True)
                if isinstance(timed, Failed):
                    return timed
        return None
