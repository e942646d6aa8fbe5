"""What a sentence about speed can rest on: recorded measurements, and whether each is still valid."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from forge.domain.environment import Environment
from forge.domain.evidence import Confirmation, ResidentTiming, Speedup, Timing, WorkloadTiming
from forge.domain.policy import BaselineKind, Regime
from forge.domain.task import Task
from forge.domain.verdict import UNDECIDED
from forge.events import (
    BenchmarkFailed,
    BenchmarkRecorded,
    CandidateVerified,
    DeviceCalibrated,
    EnvironmentCaptured,
    Event,
    KernelPromoted,
    ModelMeasured,
    Recorded,
    ShapeTimed,
    TaskCreated,
)
from forge.projections.standing import Standing, Standings, Status

TYPES = (
    "BenchmarkFailed",
    "BenchmarkInvalidated",
    "BenchmarkRecorded",
    "CandidateVerified",
    "DeviceCalibrated",
    "EnvironmentCaptured",
    "KernelDeprecated",
    "KernelPromoted",
    "KernelRevoked",
    "ModelMeasured",
    "ReplicationRecorded",
    "ShapeTimed",
    "TaskCreated",
)
"""Types of the events that are read."""
ENDING_WORDS: dict[Status, str] = {
    "revoked": "revoked",
    "evidence_invalid": "invalidated",
    "not_replicated": "contradicted",
    "evidence_stale": "stale",
    "deprecated": "deprecated",
}
"""Words that a sentence uses for a standing."""


@dataclass(frozen=True, kw_only=True)
class Withdrawn:
    """The event after which a measurement may no longer be quoted."""

    seq: int
    event_type: str
    word: str
    """The state of the kernel or benchmark now: revoked, invalidated or deprecated."""
    why: str


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One candidate at one shape in one regime, as one benchmark event has it."""

    seq: int
    event_type: str
    task: Task
    timing: WorkloadTiming
    environment: Environment | None
    environment_seq: int | None
    verified: CandidateVerified | None
    verified_seq: int
    promoted: KernelPromoted | None
    promoted_seq: int | None
    ended: Withdrawn | None
    no_verdict: str | None
    """The reason code of a measurement that allows no verdict."""
    regime: Regime = "cold"

    @property
    def kernel_id(self) -> str | None:
        """Id of the kernel that was promoted on this benchmark; None if none was."""
        return self.promoted.kernel_id if self.promoted else None

    @property
    def first(self) -> WorkloadTiming | ResidentTiming:
        """The first measurement in this regime."""
        resident = self.timing.residency.timing if self.timing.residency else None
        return resident if self.regime == "resident" and resident is not None else self.timing

    @property
    def reported(self) -> WorkloadTiming | ResidentTiming | Confirmation:
        """The measurement in this regime whose numbers count: the confirmation, where there is one."""
        return self.first.confirmation or self.first

    @property
    def candidate(self) -> Timing:
        """The candidate's time by the confirmation, or by the first measurement if there is none."""
        return self.reported.candidate

    @property
    def speedups(self) -> tuple[Speedup, ...]:
        """Speedups over each baseline by the confirmation, or by the first measurement if there is none."""
        return self.reported.speedups

    @property
    def fastest(self) -> BaselineKind | None:
        """The baseline that is hardest to beat."""
        if not self.speedups:
            return None
        return min(self.speedups, key=lambda one: (one.baseline_median_ns, one.baseline)).baseline

    @property
    def simulated(self) -> bool:
        """Whether the candidate ran in an interpreter and not on its target."""
        return self.verified is not None and self.verified.simulated

    def over(self, baseline: str | None) -> Speedup | None:
        """Return the speedup over a baseline; None if that wasn't measured."""
        return next((one for one in self.speedups if one.baseline == baseline), None)

    @property
    def floor_share(self) -> float:
        """Floor / median of the candidate."""
        return self.first.floor_ns / self.candidate.median_ns


@dataclass(frozen=True)
class Calibration:
    """A processor's ceilings, as one event has them."""

    event: DeviceCalibrated
    gpu: str | None
    """The processor's slug; None if the ledger doesn't name it."""


@dataclass(frozen=True)
class ClaimEvidence:
    """Everything in one ledger that a sentence about speed can cite."""

    measurements: tuple[Measurement, ...]
    calibrations: Mapping[int, Calibration]
    known: frozenset[int]
    """Number of every event that a claim could name, with or without a time."""
    models: Mapping[int, ModelMeasured] = field(default_factory=dict)
    """Measurements of whole models, by the numbers of their events."""

    def by_event(self, seq: int) -> tuple[Measurement, ...]:
        """Return what an event measured: a benchmark's measurements, or those that a promotion rests on."""
        return tuple(self._by_name.get(seq, ()))

    def by_kernel(self, kernel_id: str) -> tuple[Measurement, ...]:
        """Return the measurements that a kernel was promoted on."""
        return tuple(self._by_name.get(kernel_id, ()))

    @cached_property
    def _by_name(self) -> Mapping[int | str | None, Sequence[Measurement]]:
        """The measurements by their events' numbers and by their kernels' ids."""
        found: dict[int | str | None, list[Measurement]] = {}
        for one in self.measurements:
            for name in {one.seq, one.promoted_seq, one.kernel_id}:
                found.setdefault(name, []).append(one)
        return found

    @cached_property
    def ends(self) -> frozenset[int]:
        """The numbers of the events after which a measurement may no longer be quoted."""
        return frozenset(one.ended.seq for one in self.measurements if one.ended)

    @property
    def kernel_ids(self) -> list[str]:
        """The ids of all kernels, valid or not."""
        return sorted({one.kernel_id for one in self.measurements if one.kernel_id})


@dataclass
class _Seen:
    """The events of one ledger, by the keys that other events use for them."""

    tasks: dict[str, Task] = field(default_factory=dict)
    environments: dict[str, tuple[int, Environment]] = field(default_factory=dict)
    verified: dict[int, CandidateVerified] = field(default_factory=dict)
    benchmarks: list[tuple[int, BenchmarkRecorded | BenchmarkFailed]] = field(default_factory=list)
    shapes: dict[int, ShapeTimed] = field(default_factory=dict)
    """Measurements at further shapes, by their numbers."""
    promoted: dict[int, tuple[int, KernelPromoted]] = field(default_factory=dict)
    """Promotions with their own numbers, by the number of the benchmark that each rests on."""
    standings: Standings = field(default_factory=Standings)
    calibrations: dict[int, Calibration] = field(default_factory=dict)
    models: dict[int, ModelMeasured] = field(default_factory=dict)


def gather(events: Iterable[Recorded[Event]]) -> ClaimEvidence:
    """Fold a ledger's events, in order, to the measurements that may or may not be quoted now."""
    seen, known = _Seen(), set[int]()
    for recorded in events:
        known.add(recorded.seq)
        _take(seen, recorded)
    measurements = tuple(one for seq, event in seen.benchmarks for one in _measured(seen, seq, event))
    return ClaimEvidence(measurements, seen.calibrations, frozenset(known), seen.models)


def _take(seen: _Seen, recorded: Recorded[Event]) -> None:
    seen.standings.take(recorded)
    match recorded.event:
        case TaskCreated() as event:
            seen.tasks[event.task_id] = event.task
        case EnvironmentCaptured() as event:
            seen.environments.setdefault(event.env_sha256, (recorded.seq, event.environment))
        case CandidateVerified() as event:
            seen.verified[recorded.seq] = event
        case BenchmarkRecorded() | BenchmarkFailed() as event:
            seen.benchmarks.append((recorded.seq, event))
        case ShapeTimed() as event:
            seen.shapes[recorded.seq] = event
        case KernelPromoted() as event:
            seen.promoted[event.benchmark_seq] = (recorded.seq, event)
        case ModelMeasured() as event:
            seen.models[recorded.seq] = event
        case DeviceCalibrated() as event:
            _, environment = seen.environments.get(event.env_sha256, (None, None))
            slug = (environment.gpu.slug if environment.gpu else "cpu") if environment else None
            seen.calibrations[recorded.seq] = Calibration(event, slug)
        case _:
            pass


def _ended(standing: Standing) -> Withdrawn | None:
    recorded, why = standing.ended, standing.reason
    if recorded is None or why is None:
        return None
    return Withdrawn(seq=recorded.seq, event_type=recorded.event.TYPE, word=ENDING_WORDS[standing.status], why=why)


def _measured(seen: _Seen, seq: int, event: BenchmarkRecorded | BenchmarkFailed) -> Iterable[Measurement]:
    """Yield a measurement for each shape and regime; none for a benchmark whose task isn't in the ledger."""
    task = seen.tasks.get(event.task_id)
    if task is None:
        return
    promoted_seq, promoted = seen.promoted.get(seq, (None, None))
    environment_seq, environment = seen.environments.get(event.env_sha256, (None, None))
    kernel_id = promoted.kernel_id if promoted else None
    code = event.reason.code if isinstance(event, BenchmarkFailed) else None
    for timing in event.workloads:
        cold = Measurement(
            seq=seq,
            event_type=event.TYPE,
            task=task,
            timing=timing,
            environment=environment,
            environment_seq=environment_seq,
            verified=seen.verified.get(event.verified_seq),
            verified_seq=event.verified_seq,
            promoted=promoted,
            promoted_seq=promoted_seq,
            ended=_ended(seen.standings.of(kernel_id, seq)),
            no_verdict=code if code in UNDECIDED else None,
        )
        yield from _in_each_regime(cold)
        for at, found, timing_there in _further(seen, event):
            covered = promoted is not None and found.shape in promoted.coverage.measured
            yield from _in_each_regime(
                replace(
                    cold,
                    seq=at,
                    event_type=found.TYPE,
                    timing=timing_there,
                    promoted=promoted if covered else None,
                    promoted_seq=promoted_seq if covered else None,
                    no_verdict=found.reason.code if found.reason and found.reason.code in UNDECIDED else None,
                )
            )


def _in_each_regime(cold: Measurement) -> Iterable[Measurement]:
    """Yield a measurement, and the same with resident operands where that was measured."""
    yield cold
    if cold.timing.residency is not None and cold.timing.residency.timing is not None:
        yield replace(cold, regime="resident")


def _further(
    seen: _Seen, event: BenchmarkRecorded | BenchmarkFailed
) -> Iterable[tuple[int, ShapeTimed, WorkloadTiming]]:
    """Yield what a benchmark names of further shapes, as far as it was timed there."""
    for seq in event.further_seqs if isinstance(event, BenchmarkRecorded) else ():
        found = seen.shapes.get(seq)
        if found is not None and found.timing is not None:
            yield seq, found, found.timing
