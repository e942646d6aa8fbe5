"""Has the lab time a verified candidate, and compares the samples with the promotion rule.

The order is `measure`, then `baselines`, then `conclude`, because later events hold the sequence numbers of earlier
ones. Claims are assessed after the benchmark has its own number.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from forge.domain.another_run import IN_ANOTHER_RUN
from forge.domain.digest import canonical, digest_of, sha256
from forge.domain.evidence import WorkloadTiming
from forge.domain.policy import BaselineKind
from forge.domain.verdict import UNDECIDED, Reason
from forge.errors import EnvironmentUnfit
from forge.events import BaselineRecorded, BenchmarkErrored, BenchmarkFailed, BenchmarkRecorded, Event
from forge.lab.finding import Failed
from forge.lab.job import Progress
from forge.lab.timing.graph_replay import ReplaySamples
from forge.lab.timing.paired_interval import summarise
from forge.lab.timing.screening import ContenderScreening
from forge.lab.timing.slope import SlopeSamples
from forge.pipeline.beside_contenders import beside_contenders
from forge.pipeline.early_stop import Stopped, early_stop, has_no_chance
from forge.pipeline.job import RecordedCandidate, job_of, simulated
from forge.pipeline.outcome import Outcome, detail_of
from forge.pipeline.promotion_rule import baseline_used, decide
from forge.pipeline.samples import Samples, Taken, render_samples
from forge.pipeline.timing_setup import TimingSetup
from forge.pipeline.timings import Measured, workload_timing

_LARGER_THAN_THE_WORK = "the noise on this machine is larger than the work measured: some times aren't above zero"
"""Reason text if a time isn't above zero after the path's own time is subtracted."""


@dataclass(frozen=True)
class Errored:
    """A fault of the machine, which says nothing about the candidate."""

    detail: str


def measure(setup: TimingSetup, earlier: Taken | None) -> Measured | Failed | Errored | Stopped:
    """Time the candidate, and time it a second time if it meets the promotion rule.

    It ends after the first process pair if that pair leaves no chance of a promotion. The confirmation takes as many
    attempts as the first measurement did. `earlier` holds the samples of earlier attempts. Raises EnvironmentUnfit
    if an interpreter stands in for the target, because its times mean nothing.
    """
    evidence, executor, progress = setup.evidence, setup.executor, setup.progress
    if simulated(evidence):
        raise EnvironmentUnfit(
            f"{evidence.task.language} for {evidence.task.target.gpu!r} runs in an interpreter on this machine: "
            "its correctness was judged, but its time would mean nothing; bench on the target itself"
        )
    job = job_of(evidence)
    try:
        progress("the candidate's own bench.py")
        claims = executor.own_claims(job, setup.artifact, progress=progress)
        take = partial(measure_with_contenders, setup, claims=claims, stops_early=True)
        return beside_contenders(executor.screen(job, progress=progress), earlier, take, progress=progress)
    except (EnvironmentUnfit, OSError) as error:
        return Errored(detail_of(error))


def measure_with_contenders(
    setup: TimingSetup,
    screening: ContenderScreening,
    earlier: Taken | None,
    *,
    claims: dict[str, float],
    stops_early: bool = False,
) -> Measured | Failed | Stopped:
    """Measure beside the contenders of a screening; raise ContenderFailedError if one of them fails.

    With `stops_early`, samples that nothing was taken before end after a first process pair that leaves no chance.
    """
    task, job = setup.evidence.task, job_of(setup.evidence)
    may_stop = partial(has_no_chance, task) if stops_early and earlier is None else None
    attempt = setup.attempt(job, screening, progress=setup.progress, may_stop=may_stop)
    if isinstance(attempt, Failed):
        return attempt
    figures = early_stop(task, attempt) if may_stop is not None else None
    if figures is not None:
        return Stopped(samples=Samples.of(attempt), figures=figures, claims=claims, contenders=screening.standings)
    samples = earlier.samples.with_one_more(attempt) if earlier else Samples.of(attempt)
    measured = setup.measured(job, samples, screening, claims=claims)
    once_more = partial(setup.attempt, job, screening, progress=partial(_told_apart, setup.progress))
    return _confirmed_if_met(setup.evidence, measured, earlier, once_more)


def _confirmed_if_met(
    evidence: RecordedCandidate,
    measured: Measured,
    earlier: Taken | None,
    once_more: Callable[[], SlopeSamples | ReplaySamples | Failed],
) -> Measured | Failed:
    """Measure once more if the samples meet the rule and the policy asks for it."""
    so_far = confirmation_so_far(earlier, measured.samples)
    if not (evidence.policy.confirmation and meets_the_rule(evidence, measured)):
        return replace(measured, confirmation=so_far)
    return confirm(measured, so_far, once_more)


def confirmation_so_far(earlier: Taken | None, samples: Samples) -> Samples | None:
    """Return the samples of an earlier confirmation without a verdict, so that the next one adds to them."""
    kept = earlier.confirmation if earlier else None
    return kept if kept is not None and kept.usable and kept.method == samples.method else None


def confirm(
    measured: Measured, so_far: Samples | None, once_more: Callable[[], SlopeSamples | ReplaySamples | Failed]
) -> Measured | Failed:
    """Add new samples that confirm those that met the rule, in as many attempts as these took."""
    confirmation = so_far
    while confirmation is None or len(confirmation.attempts) < len(measured.samples.attempts):
        attempt = once_more()
        if isinstance(attempt, Failed):
            return attempt
        confirmation = confirmation.with_one_more(attempt) if confirmation else Samples.of(attempt)
    return replace(measured, confirmation=confirmation)


def _told_apart(progress: Progress, step: str) -> None:
    progress(f"confirmation: {step}")


def meets_the_rule(evidence: RecordedCandidate, measured: Measured) -> bool:
    """Return whether samples meet the promotion rule, and those of the confirmation if there are any."""
    if not measured.usable:
        return False
    timing = workload_timing(evidence.task.shape, measured, samples_sha256=sha256(b""))
    return decide(evidence.task, evidence.policy, timing, baseline_used(evidence.task, timing)) is None


def baselines(evidence: RecordedCandidate, measured: Measured) -> Outcome:
    """Return the time of each baseline as events of the task."""
    if not measured.usable:
        return Outcome(events=())
    return Outcome(
        events=tuple(
            BaselineRecorded(
                run_id=evidence.run_id,
                task_id=evidence.task.task_id,
                kind=kind,
                shape=evidence.task.shape,
                timing=summarise(measured.samples.per_call_ns(kind), measured.samples.method),
                env_sha256=evidence.environment.env_sha256,
            )
            for kind in measured.kinds
        )
    )


def conclude(
    evidence: RecordedCandidate,
    measured: Measured,
    *,
    verified_seq: int,
    baseline_seqs: tuple[int, ...],
    further_seqs: tuple[int, ...] = (),
) -> Outcome:
    """Compare the samples with the promotion rule: BenchmarkRecorded, or BenchmarkFailed with the reason."""
    raw = render_samples(measured.samples, measured.confirmation)
    if not measured.usable:
        next_step = "measure again" if measured.samples.usable else IN_ANOTHER_RUN
        reason = Reason(code="NOISE_TOO_HIGH", message=f"{_LARGER_THAN_THE_WORK}; {next_step}")
        return failed(evidence, reason, verified_seq=verified_seq, raw=raw)
    timing = workload_timing(evidence.task.shape, measured, samples_sha256=sha256(raw))
    used = baseline_used(evidence.task, timing)
    reason_against = decide(evidence.task, evidence.policy, timing, used)
    report = _report(evidence, timing, used, reason_against)
    files = {"benchmark_report.json": report, "benchmark_samples.json": raw}
    common = _common(evidence, report) | {
        "workloads": (timing,),
        "baseline_used": used,
        "verified_seq": verified_seq,
        "process_sha256": evidence.process_sha256,
        "contenders": measured.contenders,
    }
    event: Event
    if reason_against is None:
        named = {"baseline_seqs": baseline_seqs, "further_seqs": further_seqs, "isolation": evidence.isolation}
        event = BenchmarkRecorded.model_validate(common | named)
    else:
        event = BenchmarkFailed.model_validate(common | {"reason": reason_against})
    return Outcome(events=(event,), files=files, blobs=(raw, report))


def failed(
    evidence: RecordedCandidate,
    reason: Reason,
    *,
    verified_seq: int,
    raw: bytes | None = None,
    untrusted_log: str = "",
) -> Outcome:
    """Return BenchmarkFailed for a timing that didn't finish. Samples so far are kept for the next attempt."""
    return _failed(evidence, reason, raw, {"verified_seq": verified_seq}, {"untrusted_log": untrusted_log})


def conclude_stopped(evidence: RecordedCandidate, stopped: Stopped, *, verified_seq: int) -> Outcome:
    """Return BenchmarkFailed with the figures of the pair that left no chance."""
    figures = stopped.figures
    named = {
        "verified_seq": verified_seq,
        "baseline_used": figures.baseline,
        "process_sha256": evidence.process_sha256,
        "contenders": stopped.contenders,
        "stopped": figures,
    }
    told = {"stopped": figures.model_dump(mode="json"), "workloads": [], "baseline_used": figures.baseline}
    return _failed(evidence, stopped.reason, render_samples(stopped.samples), named, told)


def _failed(
    evidence: RecordedCandidate,
    reason: Reason,
    raw: bytes | None,
    named: Mapping[str, object],
    told: Mapping[str, object],
) -> Outcome:
    """Return BenchmarkFailed without a timing; `named` are further fields of it, `told` those of its report."""
    report = canonical(
        {
            "candidate": evidence.submitted.candidate,
            "task_id": evidence.task.task_id,
            "attempt": evidence.attempt,
            "reason": reason.model_dump(mode="json"),
            "samples_sha256": sha256(raw) if raw is not None else None,
            **told,
        }
    )
    nothing_timed = {"reason": reason, "workloads": (), "baseline_used": None}
    event = BenchmarkFailed.model_validate({**_common(evidence, report), **nothing_timed, **named})
    files = {"benchmark_report.json": report}
    if raw is None:
        return Outcome(events=(event,), files=files, blobs=(report,))
    return Outcome(events=(event,), files={**files, "benchmark_samples.json": raw}, blobs=(raw, report))


def _common(evidence: RecordedCandidate, report: bytes) -> dict[str, object]:
    """Return the fields that the event of a benchmark has however it ended."""
    return {
        "run_id": evidence.run_id,
        "task_id": evidence.task.task_id,
        "candidate": evidence.submitted.candidate,
        "attempt": evidence.attempt,
        "env_sha256": evidence.environment.env_sha256,
        "report_sha256": sha256(report),
        "policy_sha256": digest_of(evidence.policy),
    }


def errored(evidence: RecordedCandidate, error: Errored) -> Outcome:
    """Return the event of a benchmark that the machine ended."""
    event = BenchmarkErrored(
        run_id=evidence.run_id,
        task_id=evidence.task.task_id,
        candidate=evidence.submitted.candidate,
        attempt=evidence.attempt,
        detail=error.detail[:2000],
        retry_of=evidence.retry_of,
        env_sha256=evidence.environment.env_sha256,
    )
    return Outcome(events=(event,))


def undecided(reason: Reason) -> bool:
    """Return True if the reason says nothing about the candidate."""
    return reason.code in UNDECIDED


def _report(evidence: RecordedCandidate, timing: WorkloadTiming, used: BaselineKind, against: Reason | None) -> bytes:
    return canonical(
        {
            "candidate": evidence.submitted.candidate,
            "task_id": evidence.task.task_id,
            "attempt": evidence.attempt,
            "method": timing.candidate.method,
            "baseline_used": used,
            "minimum_speedup": evidence.task.minimum_speedup,
            "reason": against.model_dump(mode="json") if against else None,
            "workloads": [timing.model_dump(mode="json")],
            "isolation": evidence.isolation.model_dump(mode="json"),
            "environment": evidence.environment.env_sha256,
        }
    )
