"""What a sentence about speed can rest on: recorded measurements, and whether each is still valid."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

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


EventOfKind = TypeVar("EventOfKind")


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


@dataclass(frozen=True, kw_only=True)
class _Ledger:
    """The events of one ledger, by the keys that other events use for them."""

    tasks: Mapping[str, Task]
    environments: Mapping[str, tuple[int, Environment]]
    verified: Mapping[int, CandidateVerified]
    shapes: Mapping[int, ShapeTimed]
    """Measurements at further shapes, by their numbers."""
    promoted: Mapping[int, tuple[int, KernelPromoted]]
    """Promotions with their own numbers, by the number of the benchmark that each rests on."""
    standings: Standings


def gather(events: Iterable[Recorded[Event]]) -> ClaimEvidence:
    """Fold a ledger's events, in order, to the measurements that may or may not be quoted now."""
    history, standings = tuple(events), Standings()
    for recorded in history:
        standings.take(recorded)
    captured = _of(EnvironmentCaptured, history)
    ledger = _Ledger(
        tasks={event.task_id: event.task for event in _of(TaskCreated, history).values()},
        environments={event.env_sha256: (seq, event.environment) for seq, event in reversed(captured.items())},
        verified=_of(CandidateVerified, history),
        shapes=_of(ShapeTimed, history),
        promoted={event.benchmark_seq: (seq, event) for seq, event in _of(KernelPromoted, history).items()},
        standings=standings,
    )
    gpus = {key: one.gpu.slug if one.gpu else "cpu" for key, (_, one) in ledger.environments.items()}
    calibrated = _of(DeviceCalibrated, history)
    benchmarks = _of(BenchmarkRecorded, history) | _of(BenchmarkFailed, history)
    return ClaimEvidence(
        measurements=tuple(one for seq in sorted(benchmarks) for one in _measured(ledger, seq, benchmarks[seq])),
        calibrations={seq: Calibration(event, gpus.get(event.env_sha256)) for seq, event in calibrated.items()},
        known=frozenset(recorded.seq for recorded in history),
        models=_of(ModelMeasured, history),
    )


def _of(kind: type[EventOfKind], history: Iterable[Recorded[Event]]) -> dict[int, EventOfKind]:
    """Return the events of one type by their numbers."""
    return {one.seq: one.event for one in history if isinstance(one.event, kind)}


def _ended(standing: Standing) -> Withdrawn | None:
    recorded, why = standing.ended, standing.reason
    if recorded is None or why is None:
        return None
    return Withdrawn(seq=recorded.seq, event_type=recorded.event.TYPE, word=ENDING_WORDS[standing.status], why=why)


def _measured(ledger: _Ledger, seq: int, event: BenchmarkRecorded | BenchmarkFailed) -> Iterator[Measurement]:
    """Yield a measurement for each shape and regime; none for a benchmark whose task isn't in the ledger."""
    task = ledger.tasks.get(event.task_id)
    if task is None:
        return
    promoted_seq, promoted = ledger.promoted.get(seq, (None, None))
    environment_seq, environment = ledger.environments.get(event.env_sha256, (None, None))
    own = event.reason if isinstance(event, BenchmarkFailed) else None
    points = [(seq, event.TYPE, timing, own) for timing in event.workloads]
    for at in event.further_seqs if isinstance(event, BenchmarkRecorded) else ():
        found = ledger.shapes.get(at)
        if found is not None and found.timing is not None:
            points.append((at, found.TYPE, found.timing, found.reason))
    for at, event_type, timing, reason in points:
        covered = at == seq or (promoted is not None and timing.shape in promoted.coverage.measured)
        cold = Measurement(
            seq=at,
            event_type=event_type,
            task=task,
            timing=timing,
            environment=environment,
            environment_seq=environment_seq,
            verified=ledger.verified.get(event.verified_seq),
            verified_seq=event.verified_seq,
            promoted=promoted if covered else None,
            promoted_seq=promoted_seq if covered else None,
            ended=_ended(ledger.standings.of(promoted.kernel_id if promoted else None, seq)),
            no_verdict=reason.code if reason is not None and reason.code in UNDECIDED else None,
        )
        yield cold
        if timing.residency is not None and timing.residency.timing is not None:
            yield replace(cold, regime="resident")
