"""Computes the evidence of one workload from raw samples: summaries, paired ratios with intervals, the floor."""

import statistics
from dataclasses import dataclass

from forge.domain.contender import ContenderStanding
from forge.domain.contender_name import is_contender
from forge.domain.digest import Digest
from forge.domain.evidence import Confirmation, Interval, Replay, Residency, ResidentTiming, Speedup, WorkloadTiming
from forge.domain.policy import CONTROL_KIND, BaselineKind
from forge.domain.tensors import Shape
from forge.lab.finding import Failed
from forge.lab.timing.cpu_processes import CANDIDATE, CONTROL, HARNESS
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lab.timing.paired_interval import interval, pair_ratios, summarise
from forge.pipeline.samples import Samples
from forge.sandbox.reply import ArtifactFile

_MEASURED: tuple[BaselineKind, ...] = ("eager", "compile", "vendor", "promoted")
"""Kinds of baselines in the order of a report; contenders follow."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Samples of every side, with the floor and the claims to compare them with."""

    samples: Samples
    floor_ns: float
    claims: dict[str, float]
    plan_sha256: Digest | None = None
    """Digest of the launch plan that was timed. None: timed by the host's clock."""
    resident_floor_ns: float | None = None
    """Floor if every byte comes from the cache. None: the floor is that of the cold regime, as on a CPU."""
    contenders: tuple[ContenderStanding, ...] = ()
    """Standing of every contender after the screening."""
    confirmation: Samples | None = None
    """New samples of a candidate that met the promotion rule. None: not confirmed yet."""

    further: "tuple[MeasuredShape, ...]" = ()
    """Measurements at the task's further shapes, in its order."""

    @property
    def usable(self) -> bool:
        """True if all samples of both measurements are above zero."""
        return self.samples.usable and (self.confirmation is None or self.confirmation.usable)

    @property
    def kinds(self) -> tuple[BaselineKind, ...]:
        """The baselines among the sides."""
        return kinds_of(self.samples)


@dataclass(frozen=True)
class MeasuredShape:
    """One further shape, and what came of timing the candidate there."""

    shape: Shape
    measured: Measured | Failed
    artifact: tuple[ArtifactFile, ...] = ()
    """Files that were timed there, with the launch plan of this shape."""


def kinds_of(samples: Samples) -> tuple[BaselineKind, ...]:
    """Return the baselines among the sides of samples."""
    sides = samples.sides
    return (*(kind for kind in _MEASURED if kind in sides), *filter(is_contender, sides))


def workload_timing(shape: Shape, measured: Measured, *, samples_sha256: Digest) -> WorkloadTiming:
    """Return the summaries and intervals of every side."""
    samples = measured.samples
    candidate = samples.per_call_ns(CANDIDATE)
    timing = summarise(candidate, samples.method)
    harness = (
        [value for rounds in samples.per_call_ns(HARNESS) for value in rounds] if HARNESS in samples.sides else [0.0]
    )
    return WorkloadTiming(
        shape=shape,
        candidate=timing,
        speedups=_speedups(samples, measured.kinds),
        control=_control(samples),
        harness_ns=max(0.0, statistics.median(harness)),
        floor_ns=measured.floor_ns,
        floor_fraction=measured.floor_ns / timing.median_ns,
        process_pairs=len(candidate),
        rounds=min(map(len, candidate)),
        samples_sha256=samples_sha256,
        confirmation=_confirmation(measured.confirmation, measured.kinds),
        replay=_replay(samples, measured.plan_sha256),
        protocol=samples.protocol,
        residency=_residency(measured),
    )


def _residency(measured: Measured) -> Residency | None:
    """Return the resident regime's times, or why there are none; None for samples that don't say."""
    residence, samples = measured.samples.residence, measured.samples.resident
    if residence is None:
        return None
    why = None if samples is not None else residence.why_not or "the policy doesn't ask for it"
    timing = None if samples is None else _resident_timing(measured, samples)
    return Residency(
        cache_bytes=residence.cache_bytes, operand_bytes=residence.operand_bytes, timing=timing, why_not=why
    )


def _resident_timing(measured: Measured, samples: Samples) -> ResidentTiming:
    candidate = samples.per_call_ns(CANDIDATE)
    again = measured.confirmation.resident if measured.confirmation is not None else None
    return ResidentTiming(
        candidate=summarise(candidate, samples.method),
        speedups=_speedups(samples, measured.kinds),
        control=_control(samples),
        floor_ns=measured.resident_floor_ns or measured.floor_ns,
        process_pairs=len(candidate),
        rounds=min(map(len, candidate)),
        confirmation=_confirmation(again, measured.kinds),
    )


def _speedups(samples: Samples, kinds: tuple[BaselineKind, ...]) -> tuple[Speedup, ...]:
    candidate = samples.per_call_ns(CANDIDATE)
    speedups = []
    for kind in kinds:
        baseline = samples.per_call_ns(kind)
        ratios = pair_ratios(baseline, candidate)
        speedups.append(
            Speedup(
                baseline=kind,
                baseline_median_ns=summarise(baseline, samples.method).median_ns,
                interval=interval(ratios),
                pairs_lost=sum(ratio <= 0 for ratio in ratios),
            )
        )
    return tuple(speedups)


def _control(samples: Samples) -> Interval:
    return interval(pair_ratios(samples.per_call_ns(CONTROL_KIND), samples.per_call_ns(CONTROL)))


def _confirmation(samples: Samples | None, kinds: tuple[BaselineKind, ...]) -> Confirmation | None:
    if samples is None:
        return None
    candidate = samples.per_call_ns(CANDIDATE)
    return Confirmation(
        candidate=summarise(candidate, samples.method),
        speedups=_speedups(samples, kinds),
        control=_control(samples),
        process_pairs=len(candidate),
    )


def _replay(samples: Samples, plan_sha256: Digest | None) -> Replay | None:
    replays = [attempt for attempt in samples.attempts if isinstance(attempt, ReplaySamples)]
    if not replays or plan_sha256 is None:
        return None
    states = [state for attempt in replays for state in attempt.states]
    return Replay(
        plan_sha256=plan_sha256,
        sets=replays[-1].sets,
        set_bytes=replays[-1].set_bytes,
        host_ratio=tuple(ratio for attempt in replays for ratio in attempt.host_ratio),
        states=(states[0], states[-1]) if states else (),
        blocks=sum(attempt.blocks for attempt in replays),
        dropped=sum(attempt.dropped for attempt in replays),
        gpu_s=sum(attempt.device_ns for attempt in replays) / 1e9,
    )
