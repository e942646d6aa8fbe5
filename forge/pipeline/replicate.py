"""Compares a second measurement of a promoted kernel with the first: held, contradicted, or inconclusive.

The policy of the promotion applies again, over the fastest baseline that was measured this time. The difference is
between the two ratios over the baseline of the promotion. Both must hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from forge.domain.digest import Digest, canonical, sha256
from forge.domain.evidence import WorkloadTiming
from forge.domain.policy import BaselineKind, Policy, Regime
from forge.domain.replication import Outcome, ReplicatedSpeedup
from forge.domain.verdict import UNDECIDED, Reason
from forge.events import BenchmarkRecorded, KernelPromoted, Recorded, ReplicationRecorded
from forge.lab.timing.session_spread import agree, session_spread
from forge.lab.timing.slope import OUT_OF_ROOM
from forge.pipeline import outcome as phase
from forge.pipeline.job import RecordedCandidate
from forge.pipeline.promotion_rule import AnyTiming, baseline_used, control_band, fastest, first_unmet
from forge.pipeline.samples import render_samples
from forge.pipeline.timings import Measured, workload_timing
from forge.projections.kernel import speedup_of


@dataclass(frozen=True, kw_only=True)
class ReplicatedKernel:
    """A kernel on offer, its first measurement, and who measures it again."""

    promoted: KernelPromoted
    first: Recorded[BenchmarkRecorded]
    evidence: RecordedCandidate
    process_sha256: Digest
    earlier: tuple[ReplicatedSpeedup, ...]
    """Comparisons of all earlier replications, of any kernel."""


def conclude(case: ReplicatedKernel, measured: Measured) -> phase.Outcome:
    """Apply the rule to the new samples, and compare them with the first measurement."""
    raw = render_samples(measured.samples)
    if not measured.usable:
        why = "some times aren't above zero: the noise on this machine is larger than the work measured"
        return _recorded(case, reason=Reason(code="NOISE_TOO_HIGH", message=why), raw=raw)
    timing = workload_timing(case.evidence.task.shape, measured, samples_sha256=sha256(raw))
    used = baseline_used(case.evidence.task, timing)
    if not any(one.baseline == case.promoted.baseline for one in timing.speedups):
        why = f"the baseline of the promotion, {case.promoted.baseline}, wasn't measured this time"
        return _recorded(case, reason=Reason(code="INFRASTRUCTURE", message=why), raw=raw)
    unmet = first_unmet(case.evidence.task, case.evidence.policy, timing, used)
    against = None if unmet is None else Reason(code=unmet.code, message=unmet.against)
    pairs = _pairs(case, timing)
    comparisons = tuple(_compared(case, one) for one in pairs)
    if unmet is None or unmet.is_undecided_speedup:
        both = zip(comparisons, pairs, strict=True)
        apart = next((_contradiction(one, pair) for one, pair in both if not agree(one)), None)
        against = apart or against
    return _recorded(case, reason=against, raw=raw, timing=timing, used=used, comparisons=comparisons)


def failed(case: ReplicatedKernel, reason: Reason, *, untrusted_log: str = "") -> phase.Outcome:
    """Return the replication of a kernel that failed or answered wrongly while it was timed."""
    return _recorded(case, reason=reason, untrusted_log=untrusted_log)


def outcome_of(reason: Reason | None) -> Outcome:
    """Return what a replication that ended for this reason says about the kernel."""
    if reason is None:
        return "held"
    return "inconclusive" if reason.code in UNDECIDED | OUT_OF_ROOM else "contradicted"


@dataclass(frozen=True)
class _Pair:
    """The two measurements of one regime, and the baseline whose ratios are compared."""

    regime: Regime
    baseline: BaselineKind
    first: AnyTiming
    second: AnyTiming


def _pairs(case: ReplicatedKernel, timing: WorkloadTiming) -> tuple[_Pair, ...]:
    """Return the two measurements over the promotion's baseline, for each regime that both have."""
    first = case.first.event.workloads[0]
    cold = _Pair("cold", case.promoted.baseline, first.confirmation or first, timing)
    then, now = first.residency, timing.residency
    if then is None or now is None or then.timing is None or now.timing is None:
        return (cold,)
    resident, kind = then.timing, fastest(case.evidence.task, then.timing.speedups)
    if not any(one.baseline == kind for one in now.timing.speedups):
        return (cold,)
    return (cold, _Pair("resident", kind, resident.confirmation or resident, now.timing))


def _compared(case: ReplicatedKernel, pair: _Pair) -> ReplicatedSpeedup:
    """Return both speedups, with the difference that sessions may make."""
    earlier = [one for one in case.earlier if one.regime == pair.regime]
    spread, known = allowed_spread(earlier, case.evidence.policy, pair.second)
    return ReplicatedSpeedup(
        regime=pair.regime,
        baseline=pair.baseline,
        first=speedup_of(pair.first, pair.baseline).interval,
        first_pairs=pair.first.process_pairs,
        second=speedup_of(pair.second, pair.baseline).interval,
        second_pairs=pair.second.process_pairs,
        session_spread=spread,
        replications=known,
        kernel_ratio=pair.second.candidate.median_ns / pair.first.candidate.median_ns,
    )


def allowed_spread(earlier: Sequence[ReplicatedSpeedup], policy: Policy, timing: AnyTiming) -> tuple[float, int]:
    """Return the relative difference that sessions may make, and the number of replications behind it.

    It is never more than the control's band: knowledge makes the comparison stricter, and contradictions among the
    earlier replications don't excuse the next one. The band alone stands in while the spread is unknown.
    """
    band = control_band(policy, timing.candidate.method)
    known = session_spread(earlier)
    if known is None:
        return band, 0
    return min(band, max(known.difference, SMALLEST_SPREAD)), known.replications


SMALLEST_SPREAD = 0.002
"""Relative difference that is always allowed. The clocks don't resolve less: docs/measurement.md says why."""


def _contradiction(one: ReplicatedSpeedup, pair: _Pair) -> Reason:
    """Return the reason with both sides' median times, since a compiler may choose another program for a baseline."""
    said = (
        f"{one.second.ratio:.3f}x ({one.second.low:.3f} to {one.second.high:.3f}x) over {one.baseline}, first "
        f"{one.first.ratio:.3f}x ({one.first.low:.3f} to {one.first.high:.3f}x): the intervals are further apart "
        f"than the {one.session_spread:.1%} that sessions may differ by; "
        f"{_medians_us(pair.second, one.baseline)}, first {_medians_us(pair.first, one.baseline)}"
    )
    return Reason(code="NOT_REPLICATED", message=said)


def _medians_us(timing: AnyTiming, kind: BaselineKind) -> str:
    kernel_us, baseline_us = timing.candidate.median_ns / 1000, speedup_of(timing, kind).baseline_median_ns / 1000
    return f"{kernel_us:.2f} us against {baseline_us:.2f} us"


def _recorded(
    case: ReplicatedKernel,
    *,
    reason: Reason | None,
    raw: bytes | None = None,
    timing: WorkloadTiming | None = None,
    used: BaselineKind | None = None,
    comparisons: tuple[ReplicatedSpeedup, ...] = (),
    untrusted_log: str = "",
) -> phase.Outcome:
    """Return the event with its report; the samples of a measurement without a verdict are kept, too."""
    evidence, workloads = case.evidence, () if timing is None else (timing,)
    document: dict[str, object] = {
        "kernel_id": case.promoted.kernel_id,
        "benchmark_seq": case.first.seq,
        "outcome": outcome_of(reason),
        "reason": reason.model_dump(mode="json") if reason else None,
        "baseline_used": used,
        "workloads": [one.model_dump(mode="json") for one in workloads],
        "comparisons": [one.model_dump(mode="json") for one in comparisons],
        "samples_sha256": None if raw is None else sha256(raw),
        "untrusted_log": untrusted_log,
        "environment": evidence.environment.env_sha256,
    }
    report = canonical(document)
    event = ReplicationRecorded(
        kernel_id=case.promoted.kernel_id,
        family=case.promoted.family,
        candidate=case.promoted.candidate,
        benchmark_seq=case.first.seq,
        outcome=outcome_of(reason),
        reason=reason,
        workloads=workloads,
        baseline_used=used,
        comparisons=comparisons,
        isolation=evidence.isolation,
        process_sha256=case.process_sha256,
        env_sha256=evidence.environment.env_sha256,
        report_sha256=sha256(report),
        policy_sha256=case.promoted.policy_sha256,
    )
    blobs = (report,) if raw is None else (raw, report)
    return phase.Outcome(events=(event,), blobs=blobs)
