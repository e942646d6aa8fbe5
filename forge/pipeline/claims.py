"""Compares an author's claims with Forge's measurement."""

from collections.abc import Iterable

from forge.domain.early_stop import EarlyStop
from forge.domain.evidence import Speedup, WorkloadTiming
from forge.events import ClaimAssessed, ClaimRecorded

UNITS = {"speedup": "ratio", "candidate_latency_us": "us", "baseline_latency_us": "us"}

UNDERSTATED_SHARE = 0.5
"""Share of the interval's lower end below which a claim counts as understated. Another clock or a busy machine
changes less than a factor of two. An author's script that reports less measured something else."""


def own_bench_claims(
    claims: dict[str, float], *, run_id: str, candidate: str, family: str, attempt: int
) -> tuple[ClaimRecorded, ...]:
    """Return the numbers that the candidate's bench.py printed, as events."""
    return tuple(
        ClaimRecorded(
            run_id=run_id,
            candidate=candidate,
            claim_id=f"{run_id}:bench{attempt}:{metric}",
            metric=metric,
            value=value,
            unit=UNITS[metric],
            workload=family,
            baseline="eager",
            claimant="candidate:bench.py",
        )
        for metric, value in sorted(claims.items())
    )


def assess(
    claims: Iterable[ClaimRecorded], timing: WorkloadTiming, *, benchmark_seq: int
) -> tuple[ClaimAssessed, ...]:
    """Compare each claim with the benchmark.

    A claim is confirmed from half of the interval's lower end up to its upper end. It is overstated above, and
    understated below. It is refuted if the whole interval lies below 1.
    """
    return tuple(_assess(claim, timing, benchmark_seq) for claim in claims)


def assess_stopped(
    claims: Iterable[ClaimRecorded], stopped: EarlyStop, *, benchmark_seq: int
) -> tuple[ClaimAssessed, ...]:
    """Compare each claim with a benchmark that stopped early: it refutes speedups over its baseline."""
    return tuple(
        ClaimAssessed(
            run_id=claim.run_id,
            candidate=claim.candidate,
            claim_id=claim.claim_id,
            verdict="refuted" if comparable else "not_comparable",
            measured_value=stopped.ratio if comparable else None,
            measured_by_seq=benchmark_seq,
        )
        for claim in claims
        for comparable in (claim.metric == "speedup" and claim.baseline == stopped.baseline,)
    )


def _assess(claim: ClaimRecorded, timing: WorkloadTiming, benchmark_seq: int) -> ClaimAssessed:
    speedups = (timing.confirmation or timing).speedups
    measured = next((one for one in speedups if one.baseline == claim.baseline), None)
    verdict, value = _verdict(claim, measured)
    return ClaimAssessed.model_validate(
        {
            "run_id": claim.run_id,
            "candidate": claim.candidate,
            "claim_id": claim.claim_id,
            "verdict": verdict,
            "measured_value": value,
            "measured_by_seq": benchmark_seq,
        }
    )


def _verdict(claim: ClaimRecorded, measured: Speedup | None) -> tuple[str, float | None]:
    if claim.metric != "speedup" or measured is None:
        return "not_comparable", None
    if measured.interval.high < 1:
        return "refuted", measured.interval.ratio
    if claim.value > measured.interval.high:
        return "overstated", measured.interval.ratio
    if claim.value < UNDERSTATED_SHARE * measured.interval.low:
        return "understated", measured.interval.ratio
    return "confirmed", measured.interval.ratio
