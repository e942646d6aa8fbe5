"""Measures a guest's work with the host's clock: paired and interleaved, over fresh processes.

A side's time per call is (t - T) / k. t is the host's time for k calls. T is the cost of the path: the median time of
the empty guest for a release without calls. Nothing is subtracted that a candidate could lengthen. The order of sides
is drawn anew for each round. Every side is asked the same questions, and all answers of a candidate are judged.

On a CPU the calls of a release are a chain. The outputs of each call decide which set comes next, so that no call can
start before the previous one is done. Many more sets lie in memory than are asked, so answering all of them at once
costs more than answering those that come. Some releases have the values that gates ask, and don't count. A guest
can't tell them from others, so a kernel that is correct only on normal values is found where it is timed.

On a device copies would take most of a single call's time. So one release goes through all sets many times, between
one copy in and one copy out; the empty guest copies as well. Only each set's last call is judged, and a kernel may
remember what it saw a cycle before. So no default policy promotes by such times.
"""

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from forge.domain.contender_name import is_contender
from forge.domain.input_kind import InputKind
from forge.domain.policy import CONTROL_KIND, Policy
from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.calls.chains import Reading
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.contenders.present import PresentContender
from forge.lab.finding import Failed
from forge.lab.inputs.changes import low_bits_flipped
from forge.lab.job import Incumbent, Job, Progress
from forge.lab.observed import Case, rotated
from forge.lab.timing.contender_failure import raise_for_contender
from forge.lab.timing.cpu_processes import (
    CANDIDATE,
    CONTROL,
    HARNESS,
    GuestSet,
    open_guests,
)
from forge.lab.timing.hard_values import HardKinds, hard_kinds
from forge.lab.timing.harness_alone import harness_alone_ns, left_out
from forge.lab.timing.incumbent import PROMOTED, IncumbentFailedError, beside_incumbent
from forge.lab.timing.paired_interval import standard_error
from forge.lab.timing.release_plan import Planned, plan_release, residence_of, resident_plan
from forge.lab.timing.residency import Residence
from forge.lab.timing.tunings import compile_baselines
from forge.sandbox.reply import ArtifactFile

HARD_SHARE = 0.25
"""Share of rounds with one more release that doesn't count, in which half of the values are those that gates ask.
Chosen: of 12 rounds the first and about three others have one. A larger share costs one more release a round."""
RETAINED = 4
"""Number of outputs kept at once after a candidate was timed. One buffer for all calls shows in two outputs."""
WARM_UP_ROUNDS = 2
"""Number of rounds before those that count. Chosen; each costs a round of every side in every process pair."""
MOST_ROUNDS_FACTOR = 4
"""Number of rounds, at most, as a multiple of the policy's rounds. More than those are made only while the control is
noisy."""
OUT_OF_ROOM = frozenset({"TIMEOUT", "OUT_OF_MEMORY"})
"""Reasons that a busy machine may cause; the incumbent isn't left out for them."""


@dataclass(frozen=True, kw_only=True)
class SlopeSamples:
    """The raw samples of one attempt: nanoseconds of all calls of a release, per pair, per round, per side."""

    calls: int
    pairs: tuple[tuple[Mapping[str, float], ...], ...]
    residence: Residence | None = None
    """Size of a call's operands beside the cache's. None: samples that are older than the resident regime."""
    resident: "SlopeSamples | None" = None
    """Samples of the resident regime, of the same pairs. None: it doesn't apply."""

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of the measured sides."""
        return tuple(sorted(self.pairs[0][0]))

    def per_call_ns(self, side: str) -> list[list[float]]:
        """Return a side's time per call, by pair and round; for the empty guest, the cost of a release per call."""
        return [[work_ns / self.calls for work_ns in _work_ns(rounds, side)] for rounds in self.pairs]


def _work_ns(rounds: Sequence[Mapping[str, float]], side: str) -> list[float]:
    """Return by round how long a side's releases took beyond the empty guest's median."""
    empty = [] if side == HARNESS else [measured[HARNESS] for measured in rounds if HARNESS in measured]
    path_ns = statistics.median(empty) if empty else 0.0
    return [measured[side] - path_ns for measured in rounds]


def calm(rounds: Sequence[Mapping[str, float]], within: float) -> bool:
    """Return whether the standard error of a pair's control is at most `within`.

    The candidate's times don't influence when measuring ends.
    """
    baseline, control = _work_ns(rounds, CONTROL_KIND), _work_ns(rounds, CONTROL)
    if min(*baseline, *control) <= 0:
        return False
    ratios = [math.log(one / other) for one, other in zip(baseline, control, strict=True)]
    return standard_error(ratios) <= within


@dataclass
class _SlopePair:
    """Measures one fresh set of guests."""

    guests: GuestSet
    planned: Planned
    rng: random.Random
    rounds: list[dict[str, float]] = field(default_factory=list)

    def warm_up(self) -> Failed | None:
        """Run every side a few times; outputs are judged as in all other rounds."""
        for _ in range(WARM_UP_ROUNDS):
            measured = self.round()
            if isinstance(measured, Failed):
                return measured
        self.rounds.clear()
        return None

    def ask_for_kept_outputs(self) -> Failed | None:
        """Check that the candidate still returns separate memory for each call after it was timed."""
        candidate = self.guests.kernel(CANDIDATE)
        cases = [candidate.case(candidate.shape) for _ in range(min(RETAINED, self.planned.shown))]
        observed = candidate.call(cases, retain=True)
        return observed if isinstance(observed, Failed) else candidate.first_wrong(observed)

    def round(self) -> dict[str, float] | Failed:
        """Measure every side once on the same fresh inputs, in random order."""
        candidate = self.guests.kernel(CANDIDATE)
        if not self.planned.cycles and (not self.rounds or self.rng.random() < HARD_SHARE):
            wrong = self._ask_hard_values(candidate)
            if wrong is not None:
                return wrong
        cases = questions(candidate, self.planned, self.rng)
        sides, first = list(self.guests.sides), self.rng.randrange(len(cases))
        self.rng.shuffle(sides)
        measured: dict[str, float] = {}
        for side in sides:
            elapsed_ns = self._release(side, cases, first)
            if isinstance(elapsed_ns, Failed):
                return elapsed_ns
            measured[side] = elapsed_ns
        self.rounds.append({side: measured[side] for side in self.guests.sides})
        return measured

    def _ask_hard_values(self, candidate: LoadedKernel) -> Failed | None:
        """Make one uncounted release of each judged side; otherwise it is like the counted ones."""
        cases = questions(candidate, self.planned, self.rng, hard=hard_kinds(candidate))
        first = self.rng.randrange(len(cases))
        for side in set(self.guests.sides) & {CANDIDATE, PROMOTED}:
            answered = self._release(side, cases, first)
            if isinstance(answered, Failed):
                return answered
        return None

    def leaves_harness_out(self) -> Failed | None:
        """Check that the candidate's calls took no less than the harness takes around a function of ours.

        That is asked after the rounds, in the empty guest's process, so that it changes nothing that is counted. The
        shortest empty release is taken off the shortest of the candidate's: others may have waited for a processor.
        """
        if self.planned.cycles:
            return None
        harness, asked = self.guests.kernel(HARNESS), self.planned.asked
        alone_ns = harness_alone_ns(harness, questions(harness, Planned(shown=asked, asked=asked), self.rng))
        path_ns = min(measured[HARNESS] for measured in self.rounds)
        return left_out([measured[CANDIDATE] - path_ns for measured in self.rounds], alone_ns, calls=asked)

    def _release(self, side: str, cases: Sequence[Case], first: int) -> int | Failed:
        kernel, function = self.guests.kernel(side), self.guests.function(side)
        reading: Reading = (
            "judged" if side in (CANDIDATE, PROMOTED) else "trusted" if is_contender(side) else "unread"
        )
        if self.planned.cycles:
            observed = kernel.call(cases, function=function, cycles=self.planned.cycles)
        else:
            observed = kernel.chain(cases, first=first, count=self.planned.asked, function=function, reading=reading)
        failed = observed if isinstance(observed, Failed) else None
        if not isinstance(observed, Failed) and reading != "unread":
            failed = kernel.first_wrong(observed)
        if failed is not None and side == PROMOTED and failed.reason.code not in OUT_OF_ROOM:
            raise IncumbentFailedError(failed)
        if failed is not None and side != CANDIDATE:
            raise_for_contender(side, failed)
            raise EnvironmentUnfit(
                f"the side {side!r} failed while it was timed: {failed.reason.message}; expected one that runs "
                "here, or that policy.toml leaves out"
            )
        if failed is not None:
            return failed
        assert not isinstance(observed, Failed), "taken as failed above"
        return observed[0].elapsed_ns


def questions(
    kernel: LoadedKernel, planned: Planned, rng: random.Random, *, hard: HardKinds | None = None
) -> list[Case]:
    """Draw fresh cases at the public shape, one for each set. With `hard` kinds, half of the drawn cases have one.

    Drawing is slow, so most sets are others whose contents were moved on and whose low bits were flipped.
    """
    kinds: list[InputKind] = ["normal"] * max(2, planned.asked // 2)
    beside = min(len(kinds), planned.shown - len(kinds))
    kinds += hard.draw(beside, rng) if hard else kinds[:beside]
    drawn = [kernel.case(kernel.shape, kind) for kind in kinds]
    usual = [case for case in drawn if case.kind == "normal"]
    rotations = [_moved_on(kernel, usual, rng) for _ in range(0 if hard else planned.shown - len(drawn))]
    cases = [*drawn, *rotations, *_repeated_cases(drawn, planned.shown - len(drawn) - len(rotations), rng)]
    rng.shuffle(cases)
    return cases


def _moved_on(kernel: LoadedKernel, cases: Sequence[Case], rng: random.Random) -> Case:
    """Return one of the cases, rotated, with other low bits.

    Elementwise, the answer to a rotated question is the rotated answer, which a kernel could copy.
    """
    moved = rotated(cases, rng.randrange(len(cases)), rng.randrange(1, 2**31), kernel.operation.still)
    return low_bits_flipped(moved, sorted(kernel.definition.continuous), rng)


def _repeated_cases(drawn: Sequence[Case], count: int, rng: random.Random) -> list[Case]:
    """Return `count` of the drawn cases at random, unrotated: a rotation would change what their kind means."""
    return [rng.choice(drawn) for _ in range(count)]


def measure(
    job: Job,
    artifact: tuple[ArtifactFile, ...],
    incumbent: Incumbent | None = None,
    contenders: Sequence[PresentContender] = (),
    *,
    rng: random.Random,
    progress: Progress,
    may_stop: Callable[[SlopeSamples], bool] | None = None,
) -> SlopeSamples | Failed:
    """Time the candidate and its baselines over fresh process pairs.

    The policy's limit applies to the candidate's own calls. If the incumbent answers wrongly, it is left out and
    measuring begins again. `may_stop` is asked after the first pair; if it agrees, the samples of that pair are
    returned. Raise ContenderFailedError if a contender fails, and EnvironmentUnfit if another baseline does.
    """
    timing = _SlopeTiming(job, artifact, contenders, rng, progress, may_stop)
    return beside_incumbent(timing.measure, incumbent, progress)


@dataclass(frozen=True)
class _SlopeTiming:
    """Everything that timing a candidate needs, but the incumbent."""

    job: Job
    artifact: tuple[ArtifactFile, ...]
    contenders: Sequence[PresentContender]
    rng: random.Random
    progress: Progress
    may_stop: Callable[[SlopeSamples], bool] | None = None

    def measure(self, incumbent: Incumbent | None) -> SlopeSamples | Failed:
        job, spent_ns = self.job, 0.0
        planned: Planned | None = None
        pairs: list[tuple[Mapping[str, float], ...]] = []
        resident: list[tuple[Mapping[str, float], ...]] = []
        self.progress("baselines")
        with open_guests(job, self.artifact, incumbent, self.contenders) as factory:
            compile_baselines(job, progress=self.progress)
            for number in range(job.policy.process_pairs):
                self.progress(f"process pair {number + 1} of {job.policy.process_pairs}")
                guests = factory.fresh()
                if isinstance(guests, Failed):
                    return guests
                with guests:
                    drawn = planned or plan_release(guests, job)
                    if isinstance(drawn, Failed):
                        return drawn
                    planned = drawn
                    residence = residence_of(job, guests, planned)
                    in_cache = resident_plan(job, residence, planned)
                    rounds = _measure_pair(_SlopePair(guests, planned, self.rng), in_cache, job.policy)
                if isinstance(rounds, Failed):
                    return rounds
                pairs.append(rounds[0])
                resident.append(rounds[1])
                spent_ns += sum(one[CANDIDATE] for regime in rounds for one in regime)
                if spent_ns > job.policy.benchmark_limit_s * 1e9:
                    return _over_time_limit(job)
                inside = None if in_cache is None else SlopeSamples(calls=in_cache.calls, pairs=tuple(resident))
                taken = SlopeSamples(calls=planned.calls, pairs=tuple(pairs), residence=residence, resident=inside)
                if number == 0 and self.may_stop is not None and self.may_stop(taken):
                    break
        return taken


def _over_time_limit(job: Job) -> Failed:
    message = f"the candidate's calls took longer than {job.policy.benchmark_limit_s:g} s in all"
    return Failed(reason=Reason(code="TIMEOUT", message=message), observed=message, threshold="within the time limit")


Rounds = tuple[dict[str, float], ...]


def _measure_pair(pair: _SlopePair, in_cache: Planned | None, policy: Policy) -> tuple[Rounds, Rounds] | Failed:
    """Measure the rounds of the cold regime and then, in the same processes, those of the resident one."""
    cold = _measure_rounds(pair, policy)
    resident: Rounds | Failed = ()
    if in_cache is not None and not isinstance(cold, Failed):
        resident = _measure_rounds(_SlopePair(pair.guests, in_cache, pair.rng), policy)
    if isinstance(cold, Failed):
        return cold
    if isinstance(resident, Failed):
        return resident
    return pair.ask_for_kept_outputs() or (cold, resident)


def _measure_rounds(pair: _SlopePair, policy: Policy) -> Rounds | Failed:
    """Measure the policy's rounds, and more while the control is too noisy for it.

    A round takes a fraction of the time that starting its processes takes.
    """
    fewest, most, within = policy.rounds, MOST_ROUNDS_FACTOR * policy.rounds, policy.calm_within
    failed = pair.warm_up()
    while failed is None and (
        len(pair.rounds) < fewest or (len(pair.rounds) < most and not calm(pair.rounds, within))
    ):
        measured = pair.round()
        failed = measured if isinstance(measured, Failed) else None
    failed = failed or pair.leaves_harness_out()
    return failed if failed is not None else tuple(pair.rounds)
