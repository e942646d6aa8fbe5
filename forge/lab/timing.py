"""The host's clock on a guest's work: slopes, paired and interleaved, over fresh processes.

A side's time per call is (t(k2) - T(k1)) / (k2 - k1), where t(k) is the host's time from releasing k calls to
having their outputs, and T(k1) the median of t(k1) over the pair's rounds: a constant of the path. All sets of a
round have fresh inputs, the same for every side; every call of the candidate is judged. The order of sides is
drawn anew for each round.

On a device the copies to and from it would be most of that time. There both releases go through the same sets, in
different numbers of cycles between one copying in and one copying out: the difference has no copy in it. What is
judged is each set's last call, and a kernel may remember what it saw a cycle before: no default policy promotes by
such times.
"""

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from forge.domain.policy import CONTROL_KIND
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.device_guests import ROTATION_BYTES
from forge.lab.finding import Failed
from forge.lab.guests import CANDIDATE, CONTROL, GuestSet, open_guests
from forge.lab.job import Job, Progress, Rival
from forge.lab.observed import Case
from forge.lab.probe import Probe
from forge.sandbox.reply import ArtifactFile

MOST_SETS = 48
WORK_PER_RELEASE_NS = 5_000_000
"""The difference between the two releases should be this long, to stand out of a pipe's latency."""
WARM_UP_ROUNDS = 2
LONGEST = 4
"""Times the policy's rounds, at most, where the control isn't calm."""
CALM = 0.02
"""Standard error of a pair's median log ratio of the baseline to itself. Five such pairs are known within 2.5 %."""
MEDIANS_ERROR = math.sqrt(math.pi / 2)
"""Of the mean's, for normal noise."""
DEVICE_WORK_NS = 50_000_000
"""The same on a device, to stand out of how long the copies of a release take, which varies by a millisecond."""
DEVICE_FEW_CYCLES = 2
MOST_CYCLES = 20_000


@dataclass(frozen=True)
class Release:
    """One side in one round: the times of its two releases."""

    few_ns: int
    many_ns: int


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt's raw samples: per process pair, per round, per side."""

    few: int
    many: int
    pairs: tuple[tuple[dict[str, Release], ...], ...]

    @property
    def sides(self) -> tuple[str, ...]:
        """What was measured."""
        return tuple(sorted(self.pairs[0][0]))

    def per_call_ns(self, side: str) -> list[list[float]]:
        """A side's time per call, by pair and round."""
        calls = self.many - self.few
        return [[work_ns / calls for work_ns in _work_ns(rounds, side)] for rounds in self.pairs]


def _work_ns(rounds: Sequence[Mapping[str, Release]], side: str) -> list[float]:
    """What a side's longer release took beyond the shorter one's median, by round."""
    constant_ns = statistics.median(measured[side].few_ns for measured in rounds)
    return [measured[side].many_ns - constant_ns for measured in rounds]


def calm(rounds: Sequence[Mapping[str, Release]]) -> bool:
    """Whether a pair's control is known well. The candidate's times have no say in when measuring ends."""
    baseline, control = _work_ns(rounds, CONTROL_KIND), _work_ns(rounds, CONTROL)
    if min(*baseline, *control) <= 0:
        return False
    ratios = [math.log(one / other) for one, other in zip(baseline, control, strict=True)]
    return MEDIANS_ERROR * statistics.stdev(ratios) / math.sqrt(len(ratios)) <= CALM


@dataclass(frozen=True)
class Part:
    """What one release runs: a range of the round's sets, in turn."""

    first: int
    count: int
    cycles: int = 1

    @property
    def calls(self) -> int:
        """All together."""
        return self.count * self.cycles


@dataclass(frozen=True)
class Planned:
    """The two releases of a side in each round, the first with fewer calls."""

    few: Part
    many: Part

    @property
    def sets(self) -> int:
        """How many inputs a round has."""
        return max(part.first + part.count for part in (self.few, self.many))


@dataclass
class _Pair:
    """One fresh set of guests being measured."""

    guests: GuestSet
    planned: Planned
    rng: random.Random
    rounds: list[dict[str, Release]] = field(default_factory=list)

    def warm_up(self) -> Failed | None:
        """Run every side a few times; its outputs are judged like all others."""
        for _ in range(WARM_UP_ROUNDS):
            measured = self.round()
            if isinstance(measured, Failed):
                return measured
        self.rounds.clear()
        return None

    def round(self) -> dict[str, Release] | Failed:
        """Measure every side once on the same fresh inputs, in random order."""
        candidate = self.guests.probe(CANDIDATE)
        cases = [candidate.case(candidate.shape) for _ in range(self.planned.sets)]
        sides = list(self.guests.sides)
        self.rng.shuffle(sides)
        measured: dict[str, Release] = {}
        for side in sides:
            release = self._release(side, cases)
            if isinstance(release, Failed):
                return release
            measured[side] = release
        self.rounds.append({side: measured[side] for side in self.guests.sides})
        return measured

    def _release(self, side: str, cases: Sequence[Case]) -> Release | Failed:
        probe, function = self.guests.probe(side), self.guests.function(side)
        few, many = self.planned.few, self.planned.many
        parts = [few, many]
        self.rng.shuffle(parts)
        elapsed: dict[Part, int] = {}
        for part in parts:
            used = cases[part.first : part.first + part.count]
            observed = probe.call(used, function=function, first=part.first, sets=len(cases), cycles=part.cycles)
            if isinstance(observed, Failed):
                if side != CANDIDATE:
                    raise EnvironmentUnfit(f"the side {side!r} failed while it was timed: {observed.reason.message}")
                return observed
            elapsed[part] = observed[0].elapsed_ns
            wrong = probe.first_wrong(observed) if side == CANDIDATE else None
            if wrong is not None:
                return wrong
        return Release(elapsed[few], elapsed[many])


def measure(
    job: Job,
    artifact: tuple[ArtifactFile, ...],
    rival: Rival | None = None,
    *,
    rng: random.Random,
    progress: Progress,
) -> Attempt | Failed:
    """Time the candidate and its baselines over fresh process pairs.

    The policy's limit is on the candidate's own calls. Raise EnvironmentUnfit if a baseline fails.
    """
    pairs: list[tuple[dict[str, Release], ...]] = []
    planned: Planned | None = None
    spent_ns = 0
    progress("baselines")
    with open_guests(job, artifact, rival) as factory:
        factory.compile_baselines()
        for number in range(job.policy.process_pairs):
            progress(f"process pair {number + 1} of {job.policy.process_pairs}")
            guests = factory.fresh()
            if isinstance(guests, Failed):
                return guests
            with guests:
                if planned is None:
                    drawn = _plan(guests) if job.device == "cpu" else _plan_cycles(guests)
                    if isinstance(drawn, Failed):
                        return drawn
                    planned = drawn
                rounds = _measure_pair(_Pair(guests, planned, rng), job.policy.rounds)
            if isinstance(rounds, Failed):
                return rounds
            pairs.append(rounds)
            spent_ns += sum(one[CANDIDATE].few_ns + one[CANDIDATE].many_ns for one in rounds)
            if spent_ns > job.policy.benchmark_limit_s * 1e9:
                return _too_long(job)
    assert planned is not None, "a policy has at least two process pairs"
    return Attempt(few=planned.few.calls, many=planned.many.calls, pairs=tuple(pairs))


def _too_long(job: Job) -> Failed:
    message = f"the candidate's calls took longer than {job.policy.benchmark_limit_s:g} s in all"
    return Failed(reason=Reason(code="TIMEOUT", message=message), observed=message, threshold="within the time limit")


def _measure_pair(pair: _Pair, rounds: int) -> tuple[dict[str, Release], ...] | Failed:
    """So many rounds, and more where the control is noisy: a round takes a fraction of starting its processes."""
    failed = pair.warm_up()
    while failed is None and (
        len(pair.rounds) < rounds or (len(pair.rounds) < LONGEST * rounds and not calm(pair.rounds))
    ):
        measured = pair.round()
        failed = measured if isinstance(measured, Failed) else None
    return failed if failed is not None else tuple(pair.rounds)


def _plan(guests: GuestSet) -> Planned | Failed:
    """How many calls the two releases have: enough work for the clock, within the arena."""
    room = _room(guests.probe(CANDIDATE))
    fastest_ns = _fastest_ns(guests, (Part(0, min(room, 8)),))
    if isinstance(fastest_ns, Failed):
        return fastest_ns
    total = max(3, min(room, int(WORK_PER_RELEASE_NS / fastest_ns) + 2))
    few = max(1, total // 8)
    return Planned(Part(0, few), Part(few, total - few))


def _plan_cycles(guests: GuestSet) -> Planned | Failed:
    """How many cycles over the same sets: enough work to stand out of the copies."""
    probe = guests.probe(CANDIDATE)
    inputs, outputs = probe.forms(probe.shape)
    set_bytes = sum(form.at(0).size_bytes for form in (*inputs, *outputs))
    sets = max(2, min(_room(probe), -(-ROTATION_BYTES // max(1, set_bytes))))
    few = Part(0, sets, DEVICE_FEW_CYCLES)
    fastest_ns = _fastest_ns(guests, (few, Part(0, sets, 5 * DEVICE_FEW_CYCLES)))
    if isinstance(fastest_ns, Failed):
        return fastest_ns
    more = min(MOST_CYCLES, int(DEVICE_WORK_NS / (fastest_ns * sets)) + 1)
    return Planned(few, Part(0, sets, DEVICE_FEW_CYCLES + more))


def _room(probe: Probe) -> int:
    room = MOST_SETS
    while room > 3 and not probe.fits(probe.shape, room):
        room -= 1
    return room


def _fastest_ns(guests: GuestSet, parts: Sequence[Part]) -> float | Failed:
    """Roughly the time per call of the fastest side, at least 1."""
    times = []
    for side, guest in guests.pairs():
        rough_ns = _rough_ns(guest, guests.function(side), parts)
        if isinstance(rough_ns, Failed):
            if side != CANDIDATE:
                raise EnvironmentUnfit(f"the side {side!r} failed while it was timed: {rough_ns.reason.message}")
            return rough_ns
        times.append(rough_ns)
    return max(1.0, min(times))


def _rough_ns(probe: Probe, function: int, parts: Sequence[Part]) -> float | Failed:
    """Of one release the best time over its calls; of two, the difference over theirs."""
    cases = [probe.case(probe.shape) for _ in range(parts[0].count)]
    best = dict.fromkeys(parts, 1e18)
    for _ in range(3):
        for part in parts:
            observed = probe.call(cases, function=function, cycles=part.cycles)
            if isinstance(observed, Failed):
                return observed
            best[part] = min(best[part], float(observed[0].elapsed_ns))
    few, *others = parts
    if not others:
        return best[few] / few.calls
    (many,) = others
    return (best[many] - best[few]) / (many.calls - few.calls)
