"""The host's clock on a guest's work: slopes, paired and interleaved, over fresh processes.

A side's time per call is (t(k2) - T(k1)) / (k2 - k1), where t(k) is the host's time from releasing k calls to
having their outputs, and T(k1) the median of t(k1) over the pair's rounds: a constant of the path. All sets of a
round have fresh inputs, the same for every side; every call of the candidate is judged. The order of sides is
drawn anew for each round.
"""

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.finding import Failed
from forge.lab.guests import CANDIDATE, GuestSet, open_guests
from forge.lab.job import Job, Progress
from forge.lab.probe import Case, Probe
from forge.sandbox.reply import ArtifactFile

MOST_SETS = 48
WORK_PER_RELEASE_NS = 5_000_000
"""The difference between the two releases should be this long, to stand out of a pipe's latency."""
WARM_UP_ROUNDS = 2


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

    def per_call_ns(self, side: str) -> list[list[float]]:
        """A side's time per call, by pair and round."""
        calls = self.many - self.few
        slopes = []
        for rounds in self.pairs:
            constant_ns = statistics.median(measured[side].few_ns for measured in rounds)
            slopes.append([(measured[side].many_ns - constant_ns) / calls for measured in rounds])
        return slopes


@dataclass
class _Pair:
    """One fresh set of guests being measured."""

    guests: GuestSet
    few: int
    many: int
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
        cases = [candidate.case(candidate.shape) for _ in range(self.few + self.many)]
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
        parts = [(cases[: self.few], 0), (cases[self.few :], self.few)]
        self.rng.shuffle(parts)
        elapsed: dict[int, int] = {}
        for part, first in parts:
            observed = probe.call(part, function=function, first=first, sets=len(cases))
            if isinstance(observed, Failed):
                if side != CANDIDATE:
                    raise EnvironmentUnfit(f"the side {side!r} failed while it was timed: {observed.reason.message}")
                return observed
            elapsed[len(part)] = observed[0].elapsed_ns
            wrong = probe.first_wrong(observed) if side == CANDIDATE else None
            if wrong is not None:
                return wrong
        return Release(elapsed[self.few], elapsed[self.many])


def measure(
    job: Job, artifact: tuple[ArtifactFile, ...], *, rng: random.Random, progress: Progress
) -> Attempt | Failed:
    """Time the candidate and its baselines over fresh process pairs.

    The policy's limit is on the candidate's own calls. Raise EnvironmentUnfit if a baseline fails.
    """
    pairs: list[tuple[dict[str, Release], ...]] = []
    few = many = spent_ns = 0
    progress("baselines")
    with open_guests(job, artifact) as factory:
        factory.compile_baselines()
        for number in range(job.policy.process_pairs):
            progress(f"process pair {number + 1} of {job.policy.process_pairs}")
            guests = factory.fresh()
            if isinstance(guests, Failed):
                return guests
            with guests:
                if not many:
                    planned = _plan(guests)
                    if isinstance(planned, Failed):
                        return planned
                    few, many = planned
                rounds = _measure_pair(_Pair(guests, few, many, rng), job.policy.rounds)
            if isinstance(rounds, Failed):
                return rounds
            pairs.append(rounds)
            spent_ns += sum(one[CANDIDATE].few_ns + one[CANDIDATE].many_ns for one in rounds)
            if spent_ns > job.policy.benchmark_limit_s * 1e9:
                return _too_long(job)
    return Attempt(few=few, many=many, pairs=tuple(pairs))


def _too_long(job: Job) -> Failed:
    message = f"the candidate's calls took longer than {job.policy.benchmark_limit_s:g} s in all"
    return Failed(reason=Reason(code="TIMEOUT", message=message), observed=message, threshold="within the time limit")


def _measure_pair(pair: _Pair, rounds: int) -> tuple[dict[str, Release], ...] | Failed:
    failed = pair.warm_up()
    for _ in range(rounds):
        if failed is not None:
            return failed
        measured = pair.round()
        failed = measured if isinstance(measured, Failed) else None
    return failed if failed is not None else tuple(pair.rounds)


def _plan(guests: GuestSet) -> tuple[int, int] | Failed:
    """How many calls the two releases have: enough work for the clock, within the arena."""
    probe = guests.probe(CANDIDATE)
    room = MOST_SETS
    while room > 3 and not probe.fits(probe.shape, room):
        room -= 1
    few = min(room, 8)
    times = []
    for side, guest in guests.pairs():
        rough_ns = _rough_ns(guest, guests.function(side), few)
        if isinstance(rough_ns, Failed):
            if side != CANDIDATE:
                raise EnvironmentUnfit(f"the side {side!r} failed while it was timed: {rough_ns.reason.message}")
            return rough_ns
        times.append(rough_ns)
    fastest_ns = max(1.0, min(times))
    wanted = int(WORK_PER_RELEASE_NS / fastest_ns) + 2
    total = max(3, min(room, wanted))
    few = max(1, total // 8)
    return few, total - few


def _rough_ns(probe: Probe, function: int, sets: int) -> float | Failed:
    cases = [probe.case(probe.shape) for _ in range(sets)]
    best = 1e18
    for _ in range(3):
        observed = probe.call(cases, function=function)
        if isinstance(observed, Failed):
            return observed
        best = min(best, observed[0].elapsed_ns / sets)
    return best
