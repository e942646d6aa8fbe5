"""Renders what `forge.lookup` reads: an immutable snapshot named by its content, and the pointer that names it.

A snapshot is one JSON document, laid out so that a reader needn't parse all of it. The first line ends where the
kernels begin. It says how many kernels, in how many bytes, belong to each operation, GPU and dtype. The kernels
follow in that order, one a line.
The snapshot doesn't contain the ledger's head. So a registry without changes keeps its snapshot while the pointer
moves on.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby

import orjson

from forge.domain.digest import Digest, canonical, sha256
from forge.domain.kernel_domain import KernelDomain
from forge.domain.tensors import Shape
from forge.events.benchmark import ShapeTimed
from forge.projections.fold import Position
from forge.projections.kernel import MeasuredPoint, PromotedKernel

SCHEMA_VERSION = 3
"""Version of the snapshot and the pointer; `forge.lookup` reads only this one."""
POINTER = "current.json"
"""Name of the file that names the current snapshot."""
SEPARATOR = b",\n"
"""Bytes between two kernels."""
Line = tuple[str, str, str, str]
"""Operation, GPU and dtype of a kernel, and what is `shown` of it as JSON."""
Signer = Callable[[Position, Digest], str | None]
"""Function that returns the signed note for a position and a snapshot's digest; None if the key isn't at hand."""


def render(
    lines: Iterable[Line], gpus: Mapping[str, object], described: Iterable[tuple[str, str, str]] = ()
) -> bytes:
    """Return the snapshot of the kernels, in the order of operation, GPU, dtype and kernel_id.

    `gpus` is the architecture of each GPU. `described` are operations with the digests of their files under `ops/`:
    description and reference. A snapshot of before such descriptions has no `ops`, and stays byte for byte as it was.
    """
    kernels: list[bytes] = []
    slots: dict[str, dict[str, dict[str, tuple[int, int]]]] = {}
    for (op, gpu, dtype), group in groupby(lines, key=lambda line: line[:3]):
        found = [text.encode() for *_, text in group]
        bytes_taken = sum(map(len, found)) + len(SEPARATOR) * (len(found) - 1)
        slots.setdefault(op, {}).setdefault(gpu, {})[dtype] = (len(found), bytes_taken)
        kernels += found
    document: dict[str, object] = {"schema_version": SCHEMA_VERSION, "gpus": gpus, "slots": slots}
    ops = {op: {"description": description, "reference": reference} for op, description, reference in described}
    if ops:
        document["ops"] = ops
    head = orjson.dumps(document, option=orjson.OPT_SORT_KEYS).removesuffix(b"}")
    return head + b',"kernels":[\n' + SEPARATOR.join(kernels) + b"\n]}"


def file_name(digest: Digest) -> str:
    """Return the file name of a snapshot with this digest."""
    return f"lookup-{digest[:12]}.json"


def pointer_to(digest: Digest, head: Position) -> bytes:
    """Return the pointer to a snapshot; it must be written last."""
    return canonical(
        {
            "schema_version": SCHEMA_VERSION,
            "snapshot": file_name(digest),
            "sha256": digest,
            "ledger": head.document(),
        }
    )


def with_note(pointer: bytes, sign: Signer) -> bytes:
    """Return the pointer with the note that `sign` gives; unchanged if it gives none."""
    document = orjson.loads(pointer)
    head = Position(**document["ledger"])
    note = sign(head, document["sha256"])
    return pointer if note is None else canonical({**document, "note": note})


def named(content: bytes) -> tuple[str, Digest]:
    """Return a snapshot's file name and digest."""
    digest = sha256(content)
    return file_name(digest), digest


def architectures(seen: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Return GPU slug -> architecture for the GPUs in the ledger; a GPU with two architectures is left out."""
    found: dict[str, set[str]] = {}
    for slug, arch in seen:
        found.setdefault(slug, set()).add(arch)
    return {slug: next(iter(archs)) for slug, archs in found.items() if len(archs) == 1}


def shown(kernel: PromotedKernel) -> dict[str, object]:
    """Return what a lookup needs to know of one kernel."""
    event = kernel.promoted.event
    task = event.task
    return {
        "kernel_id": event.kernel_id,
        "status": kernel.status,
        "status_reason": kernel.standing.reason,
        "superseded_by": kernel.superseded_by,
        "op": task.op,
        "language": task.language,
        "gpu": task.target.gpu,
        "dtype": task.dtype,
        "sha256": kernel.source_sha256,
        "entry_point": event.entry_point,
        "artifact_sha256": event.artifact_sha256,
        "verified": _domains(event.coverage.verified),
        "points": [_point(point, task.shape) for point in (*kernel.points, *kernel.resident_points)],
        "env_sha256": event.env_sha256,
        "perf_key": event.perf_key,
        "abi_key": event.abi_key,
        "measured_at": kernel.benchmark.recorded_at,
        "verified_seq": event.verified_seq,
        "benchmark_seq": event.benchmark_seq,
        "promoted_seq": kernel.promoted.seq,
        **_replicated(kernel),
        **_unproven(kernel),
        **domain_field(event.domain),
    }


def _replicated(kernel: PromotedKernel) -> dict[str, object]:
    """Return the event of the replication that held; nothing for a provisional kernel."""
    return {"replicated_seq": kernel.standing.held.seq} if kernel.standing.held else {}


def _unproven(kernel: PromotedKernel) -> dict[str, object]:
    """Return the shapes at which a kernel isn't promoted, with the reasons; nothing if there are none."""
    found = [{"shape": one.shape, "why": why_unproven(one)} for one in kernel.unproven]
    return {"unproven": found} if found else {}


def why_unproven(one: ShapeTimed) -> str:
    """Return why a kernel isn't promoted for a further shape."""
    return f"{one.reason.code}: {one.reason.message}" if one.reason else "the promotion doesn't name it"


def domain_field(domain: KernelDomain | None) -> dict[str, object]:
    """Return {"domain": ...} of a kernel that declares its domain, else nothing, as in documents before domains."""
    return {} if domain is None else {"domain": domain.model_dump(mode="json")}


def _domains(shapes: Iterable[Shape]) -> list[dict[str, list[int]]]:
    """Return the shapes as columns, axis -> the size of each shape; one group for each set of axes."""
    groups: dict[tuple[str, ...], list[Shape]] = {}
    for shape in shapes:
        groups.setdefault(tuple(sorted(shape)), []).append(shape)
    return [{axis: [shape[axis] for shape in alike] for axis in axes} for axes, alike in groups.items()]


def _point(point: MeasuredPoint, own: Shape) -> dict[str, object]:
    """Return a measured point; `own` is the task's shape, the only one that a replication measures."""
    interval = point.speedup.interval
    return {
        "shape": point.shape,
        "median_ns": point.candidate_median_ns,
        "baseline": point.speedup.baseline,
        "baseline_median_ns": point.speedup.baseline_median_ns,
        "speedup": interval.ratio,
        "low": interval.low,
        "high": interval.high,
        "samples_sha256": point.workload.samples_sha256,
        "method": point.method,
        **({"regime": point.regime} if point.regime != "cold" else {}),
        **({"provisional": True} if point.shape != own else {}),
    }
