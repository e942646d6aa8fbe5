"""Measures device time by graph replay: paired, interleaved, over fresh launchers and contexts.

It times GPU candidates with a launch plan. A round times every side once, in a new random order. Each side gets one
window of its own graph over the same operands; each round has other operands.

Half of the windows of the candidate and of the incumbent are judged, chosen at random, by one random set each. After
the rounds come windows of the same kind, in which half of the sets have the values that gates ask. These are judged
as well.

The launcher's events are accepted if they agree with the host's clock. The host compares them with the slope of its
own time over two numbers of replays.
"""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forge.domain.contender_name import is_contender
from forge.domain.device import Ceilings, DeviceState
from forge.errors import EnvironmentUnfit
from forge.lab.contenders.present import PresentContender
from forge.lab.finding import Failed
from forge.lab.job import Job, Progress
from forge.lab.observed import Case
from forge.lab.parallel import parallel_map
from forge.lab.timing.blocks import Blocks, require_few_dropped
from forge.lab.timing.clock_envelope import compared
from forge.lab.timing.contender_failure import raise_for_contender
from forge.lab.timing.cpu_processes import CANDIDATE
from forge.lab.timing.gpu_processes import DeviceGuests, DeviceSide, open_device_guests
from forge.lab.timing.hard_values import hard_kinds
from forge.lab.timing.incumbent import PROMOTED, IncumbentFailedError, beside_incumbent
from forge.lab.timing.judged_later import JudgedLater
from forge.lab.timing.residency import Residence
from forge.lab.timing.roofline import write_back_ns
from forge.lab.timing.rotated_sets import rotated_set_count
from forge.sandbox.plans import Captured
from forge.sandbox.reply import Refused, Returned
from forge.sandbox.session import Window

WARM_UP_WINDOWS = 4
"""Number of windows of each side before the first round. Chosen; each costs a window of every side in every process
pair."""
JUDGED_SHARE = 0.5
"""Share of the candidate's timed windows that are judged, each by one of its input sets. The host chooses windows and
sets at random. Device code can't know which ones, so it can't be correct only there. One set in each of many windows
finds more than many sets in a few windows. In 24 rounds of five pairs 65 sets are judged. A candidate that skips one
call in twenty, however spread, is missed with a chance of 0.95^65, 4 %. The confirmation judges as many again."""
HARD_WINDOWS = 6
"""Number of judged windows per process pair with hard values, which the gates ask. Five pairs and a confirmation
judge sixty. A wrong answer for one kind in ten is missed with a chance of 0.9^60, 0.2 %."""
RESIDENT_CALLS = 64
"""Number of calls of a side in a resident round, at least, unless that takes too many windows. Chosen; a window is as
short as the cache is small, and each adds the resolution of its two events."""
MOST_RESIDENT_WINDOWS = 8
"""Number of resident windows of a side in one round, at most. Chosen; writing a window's operands takes longer than
its calls."""
HARD_DRAWN = 16
"""Number of different input sets with hard values. Chosen; drawing one takes long, and a window has up to 512
sets."""
_SLOPE_WINDOWS = 3
"""Number of windows for each of the two numbers of replays. Chosen; each costs at least `_SLOPE_NS` for the longer
one."""
_SLOPE_NS = 30_000_000
"""Nanoseconds of work by which the longer of the two windows exceeds the shorter one. Three per cent of it, which the
clocks may differ by, are 0.9 ms. Chosen; longer windows cost that much time in each check."""


@dataclass(frozen=True, kw_only=True)
class ResidentSamples:
    """Nanoseconds of windows whose operands were written just before, per process pair, per round, per side."""

    calls: dict[str, int]
    """Number of calls in the windows of one round, by side."""
    pairs: tuple[tuple[dict[str, int], ...], ...]

    def per_call_ns(self, side: str) -> list[list[float]]:
        """Return a side's time per call, by pair and round."""
        return [[measured[side] / self.calls[side] for measured in rounds] for rounds in self.pairs]

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of the measured sides."""
        return tuple(sorted(self.calls))


@dataclass(frozen=True, kw_only=True)
class ReplaySamples:
    """The raw samples of one attempt: nanoseconds of a window, per process pair, per round, per side."""

    calls: dict[str, int]
    """Number of calls in one window, by side."""
    pairs: tuple[tuple[dict[str, int], ...], ...]
    host_ratio: tuple[float, ...]
    """Candidate's time by the host's slope over its time by the device's events, per pair."""
    sets: int
    set_bytes: int
    """Size of the inputs and outputs of one call in bytes."""
    states: tuple[DeviceState, ...]
    """Device states before the first and after the last block, if the driver reports them."""
    blocks: int
    dropped: int
    """Number of blocks left out on all sides, since the device was shared or its clocks were throttled."""
    device_ns: int
    """Nanoseconds of all windows together."""
    residence: Residence | None = None
    """Size of a call's operands beside the cache's. None: samples that are older than the resident regime."""
    resident: "ResidentSamples | None" = None
    """Samples of the resident regime, of the same pairs. None: it doesn't apply."""

    def per_call_ns(self, side: str) -> list[list[float]]:
        """Return a side's time per call, by pair and round."""
        return [[measured[side] / self.calls[side] for measured in rounds] for rounds in self.pairs]

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of the measured sides."""
        return tuple(sorted(self.calls))


def measure_replays(
    job: Job,
    captured: Captured,
    incumbent: Captured | None,
    contenders: Sequence[PresentContender] = (),
    *,
    ceilings: Ceilings,
    rng: random.Random,
    progress: Progress,
    may_stop: Callable[[ReplaySamples], bool] | None = None,
) -> ReplaySamples | Failed:
    """Time a plan and its baselines over fresh pairs of processes.

    If the incumbent answers wrongly, it is left out and measuring begins again. `may_stop` is asked after the first
    pair; if it agrees, the samples of that pair are returned. Raise ContenderFailedError if a contender fails, and
    EnvironmentUnfit if another baseline does.
    """
    timing = _ReplayTiming(job, captured, contenders, ceilings, rng, progress, may_stop)
    return beside_incumbent(timing.measure, incumbent, progress)


@dataclass(frozen=True)
class _ReplayTiming:
    """Everything that timing a plan needs, but the incumbent."""

    job: Job
    captured: Captured
    contenders: Sequence[PresentContender]
    ceilings: Ceilings
    rng: random.Random
    progress: Progress
    may_stop: Callable[[ReplaySamples], bool] | None = None

    def measure(self, incumbent: Captured | None) -> ReplaySamples | Failed:
        job, pairs, cases = self.job, list[_ReplayPair](), list[Case]()
        opening = open_device_guests(job, self.captured, incumbent, self.contenders, progress=self.progress)
        with opening as opened:
            for number, guests in enumerate(opened):
                self.progress(f"process pair {number + 1} of {job.policy.process_pairs}")
                cases = cases or _drawn_cases(guests)
                cached_write_ns = write_back_ns(
                    len(cases) * job.operation.written_bytes(job.shape, job.dtype), self.ceilings
                )
                residence = Residence(self.ceilings.cache_bytes, guests.set_bytes)
                in_cache = _resident_sets(job, residence, len(cases))
                pair = _ReplayPair(job, guests, cases, self.rng, cached_write_ns=cached_write_ns, in_cache=in_cache)
                failed = pair.measure()
                if failed is not None:
                    return failed
                pairs.append(pair)
                if number == 0 and self.may_stop is not None and not pair.disturbed:
                    first = self._samples(pairs, guests, len(cases), residence)
                    if self.may_stop(first):
                        return first
        return self._samples(pairs, guests, len(cases), residence)

    def _samples(
        self, pairs: "list[_ReplayPair]", guests: DeviceGuests, sets: int, residence: Residence
    ) -> ReplaySamples:
        """Return the samples of all pairs; raise EnvironmentUnfit if too many blocks were dropped."""
        in_cache = _resident_sets(self.job, residence, sets)
        require_few_dropped([pair.blocks for pair in pairs], self.job.policy.most_dropped)
        if in_cache:
            require_few_dropped([pair.resident_blocks for pair in pairs], self.job.policy.most_dropped)
        states = [state for pair in pairs for state in pair.blocks.states]
        return ReplaySamples(
            calls=dict.fromkeys(guests.sides, sets),
            pairs=tuple(tuple(pair.blocks.rounds) for pair in pairs),
            host_ratio=tuple(pair.host_ratio for pair in pairs),
            sets=sets,
            set_bytes=guests.set_bytes,
            states=(states[0], states[-1]) if states else (),
            blocks=sum(pair.blocks.count for pair in pairs),
            dropped=sum(pair.blocks.dropped for pair in pairs),
            device_ns=sum(pair.device_ns for pair in pairs),
            residence=residence,
            resident=_resident_samples(pairs, in_cache),
        )


def _resident_sets(job: Job, residence: Residence, drawn: int) -> int:
    """Return how many sets a resident window has; 0 if the regime isn't asked for or doesn't apply."""
    if "resident" not in job.policy.regimes or residence.why_not is not None:
        return 0
    return min(drawn, residence.sets)


def _resident_samples(pairs: "list[_ReplayPair]", in_cache: int) -> ResidentSamples | None:
    if not in_cache:
        return None
    rounds = tuple(tuple(pair.resident_blocks.rounds) for pair in pairs)
    return ResidentSamples(calls=dict.fromkeys(rounds[0][0], in_cache * windows_of(in_cache)), pairs=rounds)


def windows_of(in_cache: int) -> int:
    """Return the number of resident windows of one side in a round: a short window says little alone."""
    return min(MOST_RESIDENT_WINDOWS, -(-RESIDENT_CALLS // in_cache))


def _drawn_cases(guests: DeviceGuests) -> list[Case]:
    """Draw the operands of every set.

    Each round rotates their contents, so that no side is timed twice on the same operands.
    """
    kernel = guests.sides[CANDIDATE].kernel
    return kernel.cases(kernel.shape, ["normal"] * rotated_set_count(guests.set_bytes))


class _ReplayPair:
    """Measures one set of fresh guests."""

    def __init__(
        self,
        job: Job,
        guests: DeviceGuests,
        cases: list[Case],
        rng: random.Random,
        *,
        cached_write_ns: float,
        in_cache: int = 0,
    ) -> None:
        self._job = job
        self._guests = guests
        self._rng = rng
        self._cases = cases
        self._cached_write_ns = cached_write_ns
        self.host_ratio = 1.0
        self.device_ns = 0
        self.blocks = Blocks(job.gpu)
        self._in_cache = in_cache
        """Number of sets of a resident window; 0 if that regime isn't measured."""
        self._resident = False
        self._later = JudgedLater(side_by_side=job.definition.runs_here)
        self.resident_blocks = Blocks(job.gpu)

    @property
    def disturbed(self) -> bool:
        """True if a block of a regime was left out."""
        return self.blocks.dropped + self.resident_blocks.dropped > 0

    def measure(self) -> Failed | None:
        """Measure every round of every side: the cold regime, then the resident one."""
        drawn = self._cases
        failed = self._rounds(self.blocks, windows=1) or self._compare_with_host() or self._judge_hard_values()
        if failed is not None or not self._in_cache:
            return failed
        self._resident, self._cases = True, drawn[: self._in_cache]
        self.resident_blocks = Blocks(self._job.gpu)
        return self._rounds(self.resident_blocks, windows=windows_of(self._in_cache))

    def _rounds(self, blocks: Blocks, *, windows: int) -> Failed | None:
        """Lay out the sets, warm up, and measure the rounds of one regime."""
        for refused in parallel_map(lambda kernel: kernel.fill(self._cases), self._guests.kernels, serial_up_to=1):
            _require_laid_out(refused)
        for side in [*self._guests.sides] * WARM_UP_WINDOWS:
            warmed = self._window(side)
            if isinstance(warmed, Failed):
                return warmed
        for _ in range(self._job.policy.replay_rounds):
            measured = dict.fromkeys(self._guests.sides, 0)
            for _ in range(windows):
                failed = self._measure_sides(measured)
                if failed is not None:
                    return failed
            blocks.add(measured)
        blocks.close()
        return self._judge_waiting()

    def _measure_sides(self, measured: dict[str, int]) -> Failed | None:
        """Add the time of one window of each side, in random order and on the same fresh operands."""
        order, rotation_offset = list(self._guests.sides), self._rng.randrange(1, 2**31)
        self._rng.shuffle(order)
        for side in order:
            judged = (side in self._judged_sides or is_contender(side)) and self._rng.random() < JUDGED_SHARE
            timed = self._window(side, rotation_offset=rotation_offset, judged=judged)
            if isinstance(timed, Failed):
                return timed
            measured[side] += timed.device_ns
        return None

    @property
    def _judged_sides(self) -> tuple[str, ...]:
        return tuple(side for side in (CANDIDATE, PROMOTED) if side in self._guests.sides)

    def _window(
        self, side: str, *, rotation_offset: int = 0, repeats: int = 1, judged: bool = False, again: bool = False
    ) -> Returned | Failed:
        """Time one window; the answers of a judged one wait, and are judged before the pair ends."""
        one: DeviceSide = self._guests.sides[side]
        copied = self._rng.randrange(len(self._cases)) if judged else None
        window = Window(
            repeats=repeats, rotation_offset=rotation_offset, copied=copied, again=again, resident=self._resident
        )
        timed = one.kernel.time(one.function, window, self._cases)
        if isinstance(timed, Failed):
            return self._failed(side, timed)
        if timed[0].device_ns <= 0:
            raise EnvironmentUnfit(
                f"the side {side!r} took no time by the device's events: expected some; measure again"
            )
        self.device_ns += timed[0].device_ns
        wrong = self._later.add(side, one.kernel, timed[1])
        return timed[0] if wrong is None else self._failed(*wrong)

    def _judge_waiting(self) -> Failed | None:
        """Judge the answers of the windows so far; raise if another side than the candidate is wrong."""
        wrong = self._later.judge()
        return None if wrong is None else self._failed(*wrong)

    def _failed(self, side: str, failed: Failed) -> Failed:
        """Return the candidate's failure; raise for another side's."""
        if side == PROMOTED:
            raise IncumbentFailedError(failed)
        if not self._guests.sides[side].candidates:
            raise_for_contender(side, failed)
            raise EnvironmentUnfit(
                f"the side {side!r} failed while it was timed: {failed.reason.message}; {failed.log[-300:]}; "
                "expected one that runs here, or that policy.toml leaves out"
            )
        return failed

    def _compare_with_host(self) -> Failed | None:
        """Compare the host's slope for the candidate with its events; beyond the envelope one of the two is wrong."""
        if not self.blocks.rounds:
            return None
        window_ns = statistics.median(measured[CANDIDATE] for measured in self.blocks.rounds)
        times: dict[int, list[int]] = {1: [], 1 + max(1, round(_SLOPE_NS / window_ns)): []}
        replayed_ns: list[int] = []
        for _ in range(_SLOPE_WINDOWS):
            for repeats, taken in times.items():
                timed = self._window(CANDIDATE, repeats=repeats, again=True)
                if isinstance(timed, Failed):
                    return timed
                taken.append(timed.elapsed_ns)
                if repeats > 1:  # the slope is that of the longer windows, and so are their events
                    replayed_ns.append(timed.device_ns)
        self.host_ratio, disagree = compared(times, replayed_ns, window_ns, cached_write_ns=self._cached_write_ns)
        return disagree

    def _judge_hard_values(self) -> Failed | None:
        """Judge windows like the timed ones, in which half of the sets have values that gates ask."""
        kernel = self._guests.sides[CANDIDATE].kernel
        hard = kernel.cases(kernel.shape, hard_kinds(kernel).draw(HARD_DRAWN, self._rng))
        self._cases = [self._rng.choice(hard) if self._rng.random() < 0.5 else case for case in self._cases]
        for side in self._judged_sides:
            _require_laid_out(self._guests.sides[side].kernel.fill(self._cases))
            for _ in range(HARD_WINDOWS):
                timed = self._window(side, judged=True)
                if isinstance(timed, Failed):
                    return timed
        return self._judge_waiting()


def _require_laid_out(refused: Refused | None) -> None:
    """Raise EnvironmentUnfit if a timed guest refused its operands: it ran before, so the machine is at fault."""
    if refused is not None:
        raise EnvironmentUnfit(
            f"a timed guest couldn't lay out its operands ({refused.reason.message}): expected room for them on the "
            "device; end other programs that use it, then try again",
            hint="nvidia-smi",
        )
