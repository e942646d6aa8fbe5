"""One recorded event as the rows it becomes in `history.db`. A row's keys are its table's columns."""

from collections.abc import Mapping

from forge.domain.digest import canonical
from forge.domain.evidence import WorkloadTiming
from forge.domain.policy import BaselineKind
from forge.domain.task import Task
from forge.domain.verdict import UNDECIDED, Reason
from forge.events import Recorded
from forge.events.benchmark import BenchmarkFailed, BenchmarkRecorded
from forge.events.candidate import CandidateRejected, CandidateSubmitted, ClaimAssessed, ClaimRecorded
from forge.events.environment import EnvironmentCaptured
from forge.events.promote import PromotionDenied
from forge.projections.kernel import Kernel

Cell = str | int | float | None
Row = Mapping[str, Cell]


def slot(task: Task | None) -> Row:
    """What was asked for, as far as the ledger says."""
    if task is None:
        return {"op": None, "gpu": None, "dtype": None}
    return {"op": task.op, "gpu": task.target.gpu, "dtype": task.dtype}


def candidate_row(recorded: Recorded[CandidateSubmitted], task: Task | None) -> Row:
    """One submission."""
    event = recorded.event
    return {
        "seq": recorded.seq,
        "candidate": event.candidate,
        "run_id": event.run_id,
        "task_id": event.task_id,
        **slot(task),
        "language": event.files.language,
        "entry_point": event.files.entry_point,
        "author": event.author,
        "actor": recorded.actor,
        "parents": canonical(list(event.parents)).decode(),
        "hypothesis": event.hypothesis,
        "layer": event.layer,
        "axis": event.axis,
        "recorded_at": recorded.recorded_at,
    }


def benchmark_rows(
    recorded: Recorded[BenchmarkRecorded | BenchmarkFailed],
    task: Task | None,
    captured: EnvironmentCaptured | None,
) -> list[Row]:
    """One row per workload and baseline; a benchmark that measured nothing has one without figures."""
    event = recorded.event
    reason = event.reason if isinstance(event, BenchmarkFailed) else None
    environment = captured.environment if captured else None
    shared: dict[str, Cell] = {
        "seq": recorded.seq,
        "run_id": event.run_id,
        "candidate": event.candidate,
        "task_id": event.task_id,
        **slot(task),
        "env_sha256": event.env_sha256,
        "perf_key": captured.perf_key if captured else None,
        "driver": environment.driver if environment else None,
        "torch": environment.torch if environment else None,
        "triton": environment.triton if environment else None,
        "verdict": _verdict(reason) if reason else "accepted",
        "reason_code": reason.code if reason else None,
        "recorded_at": recorded.recorded_at,
    }
    lines = [line for workload in event.workloads for line in _timings(workload, event.baseline_used)]
    return [{**shared, "line": number, **line} for number, line in enumerate(lines or [NOT_MEASURED], start=1)]


NOT_MEASURED: Row = dict.fromkeys(
    (
        "shape",
        "candidate_median_ns",
        "floor_fraction",
        "samples_sha256",
        "baseline",
        "baseline_used",
        "baseline_median_ns",
        "speedup",
        "low",
        "high",
    )
)


def _timings(workload: WorkloadTiming, baseline_used: BaselineKind | None) -> list[Row]:
    """One row per baseline; a workload without any still shows the candidate's own time."""
    candidate: dict[str, Cell] = {
        **NOT_MEASURED,
        "shape": canonical(workload.shape).decode(),
        "candidate_median_ns": workload.candidate.median_ns,
        "floor_fraction": workload.floor_fraction,
        "samples_sha256": workload.samples_sha256,
    }
    rows: list[Row] = [
        {
            **candidate,
            "baseline": speedup.baseline,
            "baseline_used": speedup.baseline == baseline_used,
            "baseline_median_ns": speedup.baseline_median_ns,
            "speedup": speedup.interval.ratio,
            "low": speedup.interval.low,
            "high": speedup.interval.high,
        }
        for speedup in workload.speedups
    ]
    return rows or [candidate]


def _verdict(reason: Reason) -> str:
    return "inconclusive" if reason.code in UNDECIDED else "rejected"


def rejection_row(recorded: Recorded[CandidateRejected | BenchmarkFailed | PromotionDenied], *, stage: str) -> Row:
    """One refusal at `stage`."""
    event = recorded.event
    return {
        "seq": recorded.seq,
        "run_id": event.run_id,
        "candidate": event.candidate,
        "task_id": event.task_id,
        "stage": stage,
        "verdict": _verdict(event.reason),
        "reason_code": event.reason.code,
        "message": event.reason.message,
        "recorded_at": recorded.recorded_at,
    }


def claim_row(recorded: Recorded[ClaimRecorded]) -> Row:
    """What was said; `assessment_columns` or UNASSESSED fill the rest."""
    event = recorded.event
    return {
        "seq": recorded.seq,
        "claim_id": event.claim_id,
        "run_id": event.run_id,
        "candidate": event.candidate,
        "claimant": event.claimant,
        "metric": event.metric,
        "unit": event.unit,
        "workload": event.workload,
        "baseline": event.baseline,
        "claimed": event.value,
        "recorded_at": recorded.recorded_at,
    }


UNASSESSED: Row = {"measured": None, "verdict": None, "assessed_seq": None, "measured_by_seq": None}


def assessment_columns(recorded: Recorded[ClaimAssessed]) -> Row:
    """What a claim came to."""
    event = recorded.event
    return {
        "measured": event.measured_value,
        "verdict": event.verdict,
        "assessed_seq": recorded.seq,
        "measured_by_seq": event.measured_by_seq,
    }


def kernel_row(kernel: Kernel) -> Row:
    """One promoted version as it stands now."""
    event = kernel.promoted.event
    return {
        "kernel_id": event.kernel_id,
        "family": event.family,
        "version": event.version,
        "status": kernel.status,
        "status_reason": kernel.status_reason,
        "status_seq": kernel.status_seq,
        **slot(event.task),
        "language": event.task.language,
        "shape": canonical(event.task.shape).decode(),
        "candidate": event.candidate,
        "task_id": event.task_id,
        "run_id": event.run_id,
        "author": event.author,
        "entry_point": event.entry_point,
        "artifact_sha256": event.artifact_sha256,
        "baseline": event.baseline,
        "candidate_median_ns": event.candidate_median_ns,
        "baseline_median_ns": event.baseline_median_ns,
        "speedup": event.speedup.ratio,
        "low": event.speedup.low,
        "high": event.speedup.high,
        "policy_sha256": event.policy_sha256,
        "env_sha256": event.env_sha256,
        "perf_key": event.perf_key,
        "abi_key": event.abi_key,
        "verified_seq": event.verified_seq,
        "benchmark_seq": event.benchmark_seq,
        "promoted_seq": kernel.promoted.seq,
        "recorded_at": kernel.promoted.recorded_at,
    }
