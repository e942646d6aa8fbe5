"""What `forge.lookup` reads: an immutable snapshot named by its content, and the pointer that names it.

The snapshot says nothing of the ledger's head, so a registry that didn't change keeps its snapshot while the
pointer moves on.
"""

from forge.domain.digest import canonical, sha256
from forge.projections.fold import Position
from forge.projections.kernel import Kernel, MeasuredPoint
from forge.projections.registry import RegistryState, ordered

SCHEMA_VERSION = 1
"""Of the snapshot and the pointer; `forge.lookup` reads exactly this one."""
POINTER = "current.json"


def render(state: RegistryState, position: Position) -> dict[str, bytes]:
    """The snapshot and its pointer, by file name; the pointer must be written last."""
    content = canonical(
        {
            "schema_version": SCHEMA_VERSION,
            "gpus": _architectures(state),
            "kernels": [_kernel(kernel) for kernel in ordered(state)],
        }
    )
    digest = sha256(content)
    name = f"lookup-{digest[:12]}.json"
    pointer = canonical(
        {
            "schema_version": SCHEMA_VERSION,
            "snapshot": name,
            "sha256": digest,
            "ledger": position.document(),
        }
    )
    return {name: content, POINTER: pointer}


def _architectures(state: RegistryState) -> dict[str, object]:
    """GPU slug -> architecture, as far as the ledger has seen GPUs; one seen as two is left out."""
    seen: dict[str, set[str]] = {}
    for environment in state.environments.values():
        if environment.gpu:
            seen.setdefault(environment.gpu.slug, set()).add(environment.gpu.arch)
    return {slug: next(iter(archs)) for slug, archs in seen.items() if len(archs) == 1}


def _kernel(kernel: Kernel) -> dict[str, object]:
    event = kernel.promoted.event
    task = event.task
    return {
        "kernel_id": event.kernel_id,
        "status": kernel.status,
        "status_reason": kernel.status_reason,
        "superseded_by": kernel.superseded_by,
        "op": task.op,
        "language": task.language,
        "gpu": task.target.gpu,
        "dtype": task.dtype,
        "path": kernel.published_path,
        "sha256": kernel.source_sha256,
        "entry_point": event.entry_point,
        "artifact_sha256": event.artifact_sha256,
        "verified": list(event.coverage.verified),
        "points": [_point(point) for point in kernel.points],
        "env_sha256": event.env_sha256,
        "perf_key": event.perf_key,
        "abi_key": event.abi_key,
        "verified_seq": event.verified_seq,
        "benchmark_seq": event.benchmark_seq,
        "promoted_seq": kernel.promoted.seq,
    }


def _point(point: MeasuredPoint) -> dict[str, object]:
    interval = point.speedup.interval
    return {
        "shape": point.shape,
        "median_ns": point.workload.candidate.median_ns,
        "baseline": point.speedup.baseline,
        "baseline_median_ns": point.speedup.baseline_median_ns,
        "speedup": interval.ratio,
        "low": interval.low,
        "high": interval.high,
        "samples_sha256": point.workload.samples_sha256,
    }
