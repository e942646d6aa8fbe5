"""Renders one kernel for `verified_kernels.json`: familiar names, and the event behind every number.

The first twelve fields have the names and meaning that readers of such registries know. A field that this ledger
doesn't record under such a name (`max_abs_error`, `warmup_iters`) is null, never a guess.
"""

from forge.events.benchmark import BenchmarkRecorded
from forge.projections.kernel import PromotedKernel
from forge.projections.snapshot import domain_field, why_unproven


def entry(kernel: PromotedKernel) -> dict[str, object]:
    """Render `kernel`: the familiar fields, then identity, bytes, environment, figures and provenance."""
    event = kernel.promoted.event
    task = event.task
    familiar: dict[str, object] = {
        "kernel_id": kernel.kernel_id,
        "op": task.op,
        "language": task.language,
        "source_path": kernel.source_path,
        "target_gpu": task.target.gpu,
        "dtype": task.dtype,
        "shape": task.shape,
        "verification": _verification(kernel),
        "benchmark": _benchmark(kernel),
        "skill_ids": list(event.skills),
        "evidence_level": event.evidence_level,
        "created_at": kernel.promoted.recorded_at,
    }
    return familiar | _identity(kernel) | _figures(kernel) | _provenance(kernel) | _further(kernel)


def _verification(kernel: PromotedKernel) -> dict[str, object]:
    verified = kernel.verified.event
    return {
        "passed": True,
        "failure_reason": None,
        "max_abs_error": None,
        "max_rel_error": max(errors.max_relative_error for errors in verified.workloads),
        "bound_used": max(errors.bound_used for errors in verified.workloads),
        # the largest error as a share of the task's bound
        "tolerance": {"bound_used": 1.0},
        "tested_shapes": list(verified.shapes_verified),
        "workloads": [errors.model_dump(mode="json") for errors in verified.workloads],
        "gates": [gate.model_dump(mode="json") for gate in verified.gates],
        "isolation": verified.isolation.model_dump(mode="json"),
        "attempt": verified.attempt,
        "seq": kernel.verified.seq,
        "seeds_sha256": verified.seeds_sha256,
        "report_sha256": verified.report_sha256,
        "env_sha256": verified.env_sha256,
    }


def _benchmark(kernel: PromotedKernel) -> dict[str, object]:
    event, benchmark, point = kernel.promoted.event, kernel.benchmark.event, kernel.promoted_point
    environment = kernel.environment.event.environment
    return {
        "passed": True,
        "baseline_latency_us": event.baseline_median_ns / 1000,
        "candidate_latency_us": event.candidate_median_ns / 1000,
        "speedup": event.speedup.ratio,
        "warmup_iters": None,
        "benchmark_iters": point.workload.candidate.n if point else None,
        "gpu_name": environment.gpu.name if environment.gpu else None,
        "notes": None,
        "samples_sha256": point.workload.samples_sha256 if point else None,
        "workloads": [workload.model_dump(mode="json") for workload in benchmark.workloads],
        "baseline_seqs": list(benchmark.baseline_seqs),
        "isolation": benchmark.isolation.model_dump(mode="json"),
        "attempt": benchmark.attempt,
        "scope": event.benchmark_scope,
        "seq": kernel.benchmark.seq,
        "report_sha256": benchmark.report_sha256,
        "env_sha256": benchmark.env_sha256,
        **_contenders(benchmark),
    }


def _contenders(benchmark: BenchmarkRecorded) -> dict[str, object]:
    """Return what became of each contender; nothing for a benchmark from before contenders."""
    listed = [one.model_dump(mode="json") for one in benchmark.contenders]
    return {"contenders": listed} if listed else {}


def _identity(kernel: PromotedKernel) -> dict[str, object]:
    event = kernel.promoted.event
    return {
        "family": event.family,
        "version": event.version,
        "status": kernel.status,
        "status_reason": kernel.standing.reason,
        "status_seq": kernel.status_seq,
        "superseded_by": kernel.superseded_by,
        **_replications(kernel),
        "candidate": event.candidate,
        "files": [file.model_dump(mode="json") for file in event.files],
        "artifact_sha256": event.artifact_sha256,
        "entry_point": event.entry_point,
        "author": event.author,
    }


def _replications(kernel: PromotedKernel) -> dict[str, object]:
    """Return the replication that counts and its figures; nothing for a kernel that was measured once."""
    counted = kernel.standing.contradicted or kernel.standing.held
    if counted is None:
        return {}
    event = counted.event
    return {
        "replication": {
            "seq": counted.seq,
            "outcome": event.outcome,
            "reason": event.reason.model_dump(mode="json") if event.reason else None,
            "comparisons": [one.model_dump(mode="json") for one in event.comparisons],
            "env_sha256": event.env_sha256,
        }
    }


def _figures(kernel: PromotedKernel) -> dict[str, object]:
    event = kernel.promoted.event
    environment = kernel.environment.event.environment
    gpu = environment.gpu
    return {
        "speedup": event.speedup.model_dump(mode="json"),
        "baseline": event.baseline,
        "candidate_median_ns": event.candidate_median_ns,
        "baseline_median_ns": event.baseline_median_ns,
        "coverage": event.coverage.model_dump(mode="json"),
        **domain_field(event.domain),
        "environment": {
            "env_sha256": event.env_sha256,
            "perf_key": event.perf_key,
            "abi_key": event.abi_key,
            "platform": event.task.target.platform,
            "gpu_name": gpu.name if gpu else None,
            "gpu_arch": gpu.arch if gpu else None,
            "cpu_model": environment.cpu_model,
            "driver": environment.driver,
            "cuda": environment.cuda,
            "torch": environment.torch,
            "triton": environment.triton,
            "compiler": environment.compiler,
        },
    }


def _further(kernel: PromotedKernel) -> dict[str, object]:
    """Return each further shape with its figures, and whether it is proven; nothing for a task of one shape."""
    points = {point.workload.samples_sha256: point for point in kernel.points[1:]}
    listed: list[dict[str, object]] = []
    for recorded in kernel.further:
        event = recorded.event
        point = points.get(event.samples_sha256 or "") if event not in kernel.unproven else None
        listed.append(
            {
                "shape": event.shape,
                "proven": point is not None,
                "why_not": None if point is not None else why_unproven(event),
                "baseline": event.baseline_used,
                "speedup": point.speedup.interval.model_dump(mode="json") if point else None,
                "candidate_median_ns": point.candidate_median_ns if point else None,
                "baseline_median_ns": point.speedup.baseline_median_ns if point else None,
                "samples_sha256": event.samples_sha256,
                "seq": recorded.seq,
            }
        )
    return {"further_shapes": listed} if listed else {}


def _provenance(kernel: PromotedKernel) -> dict[str, object]:
    event = kernel.promoted.event
    return {
        "run_id": event.run_id,
        "task_id": event.task_id,
        "policy_sha256": event.policy_sha256,
        "gates": [gate.model_dump(mode="json") for gate in event.gates],
        "verified_seq": event.verified_seq,
        "benchmark_seq": event.benchmark_seq,
        "promoted_seq": kernel.promoted.seq,
        "promoted_event_hash": kernel.promoted.event_hash,
    }
