"""Phase 10: have the lab time a verified candidate, and hold the samples against the rule.

Three steps, since later events name the places of earlier ones: `measure`, then the baselines' events, then
`conclude`; claims are assessed once the benchmark has its place.
"""

import random
from dataclasses import dataclass

from forge.domain.digest import canonical, digest_of, sha256
from forge.domain.evidence import Speedup, TimingAuthority, WorkloadTiming
from forge.domain.policy import BaselineKind, Policy
from forge.domain.task import Task
from forge.domain.verdict import UNDECIDED, Reason
from forge.errors import EnvironmentUnfit
from forge.events import BaselineRecorded, BenchmarkErrored, BenchmarkFailed, BenchmarkRecorded, Event
from forge.executor.local import LocalExecutor
from forge.lab.finding import Failed
from forge.lab.guests import CANDIDATE, CONTROL, CONTROL_KIND, HARNESS
from forge.lab.job import Progress
from forge.lab.statistics import interval, pair_ratios, summarise, within_band
from forge.pipeline.job import Evidence, job_of, on_gpu, simulated
from forge.pipeline.outcome import Outcome
from forge.pipeline.samples import Samples, render_samples
from forge.sandbox.reply import ArtifactFile

METHOD: TimingAuthority = "host_slope"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Samples of every side, and what they were held against."""

    samples: Samples
    floor_ns: float
    claims: dict[str, float]


def measure(
    evidence: Evidence,
    executor: LocalExecutor,
    artifact: tuple[ArtifactFile, ...],
    *,
    earlier: Samples | None,
    rng: random.Random,
    progress: Progress,
) -> Measured | Failed | str:
    """Time the candidate; a string is a fault of the machine. Raise EnvironmentUnfit where time means nothing."""
    if simulated(evidence):
        raise EnvironmentUnfit(
            f"{evidence.task.language} for {evidence.task.target.gpu!r} runs in an interpreter on this machine: "
            "its correctness was judged, its time would say nothing; bench on the target itself"
        )
    if on_gpu(evidence):
        raise EnvironmentUnfit(
            f"time on {evidence.task.target.gpu!r} isn't taken yet: it needs a launch plan, "
            "since the host can't hold a clock on a GPU through a guest's own calls; the verification stands"
        )
    job = job_of(evidence)
    try:
        progress("the candidate's own bench.py")
        claims = executor.own_claims(job, artifact)
        attempt = executor.measure(job, artifact, rng=rng, progress=progress)
        if isinstance(attempt, Failed):
            return attempt
        return Measured(
            samples=Samples((*(earlier.attempts if earlier else ()), attempt)),
            floor_ns=executor.floor_ns(job),
            claims=claims,
        )
    except (EnvironmentUnfit, OSError) as error:
        return str(error)


def baselines(evidence: Evidence, measured: Measured) -> Outcome:
    """What each baseline took, as events of the task."""
    if not measured.samples.usable:
        return Outcome(events=())
    return Outcome(
        events=tuple(
            BaselineRecorded(
                run_id=evidence.run_id,
                task_id=evidence.task.task_id,
                kind=kind,
                shape=evidence.task.shape,
                timing=summarise(measured.samples.per_call_ns(kind), METHOD),
                env_sha256=evidence.environment.env_sha256,
            )
            for kind in evidence.policy.baselines
        )
    )


def conclude(evidence: Evidence, measured: Measured, *, verified_seq: int, baseline_seqs: tuple[int, ...]) -> Outcome:
    """Hold the samples against the rule: BenchmarkRecorded, or BenchmarkFailed with the reason."""
    raw = render_samples(measured.samples)
    if not measured.samples.usable:
        reason = Reason(code="NOISE_TOO_HIGH", message="the noise on this machine is larger than the work measured")
        return failed(evidence, reason, verified_seq=verified_seq, raw=raw)
    timing = _workload(evidence, measured, samples_sha256=sha256(raw))
    used = _baseline_used(evidence.task, timing)
    reason_against = decide(evidence.task, evidence.policy, timing, used)
    report = _report(evidence, timing, used, reason_against)
    files = {"benchmark_report.json": report, "benchmark_samples.json": raw}
    common = {
        "run_id": evidence.run_id,
        "task_id": evidence.task.task_id,
        "candidate": evidence.submitted.candidate,
        "attempt": evidence.attempt,
        "workloads": (timing,),
        "baseline_used": used,
        "env_sha256": evidence.environment.env_sha256,
        "verified_seq": verified_seq,
        "report_sha256": sha256(report),
        "policy_sha256": digest_of(evidence.policy),
    }
    event: Event
    if reason_against is None:
        event = BenchmarkRecorded.model_validate(
            {**common, "baseline_seqs": baseline_seqs, "isolation": evidence.isolation}
        )
    else:
        event = BenchmarkFailed.model_validate({**common, "reason": reason_against})
    return Outcome(events=(event,), files=files, blobs=(raw, report))


def failed(evidence: Evidence, reason: Reason, *, verified_seq: int, raw: bytes | None = None) -> Outcome:
    """There is nothing to hold against the rule; samples that were taken are kept, and count in the next attempt."""
    report = canonical(
        {
            "candidate": evidence.submitted.candidate,
            "task_id": evidence.task.task_id,
            "attempt": evidence.attempt,
            "method": METHOD,
            "reason": reason.model_dump(mode="json"),
            "samples_sha256": sha256(raw) if raw is not None else None,
        }
    )
    event = BenchmarkFailed(
        run_id=evidence.run_id,
        task_id=evidence.task.task_id,
        candidate=evidence.submitted.candidate,
        attempt=evidence.attempt,
        reason=reason,
        workloads=(),
        baseline_used=None,
        env_sha256=evidence.environment.env_sha256,
        verified_seq=verified_seq,
        report_sha256=sha256(report),
        policy_sha256=digest_of(evidence.policy),
    )
    files = {"benchmark_report.json": report}
    if raw is None:
        return Outcome(events=(event,), files=files, blobs=(report,))
    return Outcome(events=(event,), files={**files, "benchmark_samples.json": raw}, blobs=(raw, report))


def errored(evidence: Evidence, detail: str) -> Outcome:
    """The machine failed."""
    event = BenchmarkErrored(
        run_id=evidence.run_id,
        task_id=evidence.task.task_id,
        candidate=evidence.submitted.candidate,
        attempt=evidence.attempt,
        detail=detail[:2000],
        retry_of=evidence.retry_of,
        env_sha256=evidence.environment.env_sha256,
    )
    return Outcome(events=(event,))


def decide(task: Task, policy: Policy, timing: WorkloadTiming, used: BaselineKind) -> Reason | None:
    """The promotion rule for one workload; None if it is met, else the first reason against it."""
    band = policy.control_half_width
    if not within_band(timing.control, band):
        return Reason(
            code="NOISE_TOO_HIGH",
            message=f"{CONTROL_KIND} against itself reads {timing.control.low:.3f} to {timing.control.high:.3f}x, "
            f"allowed {1 - band:.2f} to {1 + band:.2f}x: no verdict on this machine now",
        )
    if not timing.candidate.p90_ns >= policy.floor_slack * timing.floor_ns:
        return Reason(
            code="BELOW_FLOOR",
            message=f"{timing.candidate.p90_ns:.0f} ns is less than moving the bytes takes "
            f"({timing.floor_ns:.0f} ns): the evaluator or the candidate is lying",
        )
    speedup = next(one for one in timing.speedups if one.baseline == used)
    if not (speedup.interval.low >= task.minimum_speedup and speedup.pairs_lost == 0):
        return Reason(
            code="TOO_SLOW",
            message=f"{speedup.interval.ratio:.2f}x over {used}, 95 % interval {speedup.interval.low:.2f} to "
            f"{speedup.interval.high:.2f}x: the lower end must reach {task.minimum_speedup:.2f}x "
            "in every process pair",
        )
    return None


def undecided(reason: Reason) -> bool:
    """Whether a reason leaves the question open."""
    return reason.code in UNDECIDED


def _baseline_used(task: Task, timing: WorkloadTiming) -> BaselineKind:
    if task.baseline != "best":
        return task.baseline
    return min(timing.speedups, key=lambda one: (one.baseline_median_ns, one.baseline)).baseline


def _workload(evidence: Evidence, measured: Measured, *, samples_sha256: str) -> WorkloadTiming:
    samples = measured.samples
    candidate = samples.per_call_ns(CANDIDATE)
    timing = summarise(candidate, METHOD)
    speedups = []
    for kind in evidence.policy.baselines:
        baseline = samples.per_call_ns(kind)
        ratios = pair_ratios(baseline, candidate)
        speedups.append(
            Speedup(
                baseline=kind,
                baseline_median_ns=summarise(baseline, METHOD).median_ns,
                interval=interval(ratios),
                pairs_lost=sum(ratio <= 0 for ratio in ratios),
            )
        )
    control = pair_ratios(samples.per_call_ns(CONTROL_KIND), samples.per_call_ns(CONTROL))
    return WorkloadTiming(
        shape=evidence.task.shape,
        candidate=timing,
        speedups=tuple(speedups),
        control=interval(control),
        harness_ns=summarise(samples.per_call_ns(HARNESS), METHOD).median_ns,
        floor_ns=measured.floor_ns,
        floor_fraction=measured.floor_ns / timing.median_ns,
        process_pairs=len(candidate),
        rounds=len(candidate[0]),
        samples_sha256=samples_sha256,
    )


def _report(evidence: Evidence, timing: WorkloadTiming, used: BaselineKind, against: Reason | None) -> bytes:
    return canonical(
        {
            "candidate": evidence.submitted.candidate,
            "task_id": evidence.task.task_id,
            "attempt": evidence.attempt,
            "method": METHOD,
            "baseline_used": used,
            "minimum_speedup": evidence.task.minimum_speedup,
            "reason": against.model_dump(mode="json") if against else None,
            "workloads": [timing.model_dump(mode="json")],
            "isolation": evidence.isolation.model_dump(mode="json"),
            "environment": evidence.environment.env_sha256,
        }
    )
