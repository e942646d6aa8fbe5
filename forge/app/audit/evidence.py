"""Answers why a kernel was promoted: what each gate saw and allows, down to the raw samples and their digests."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from forge.app.audit.answer import Answer, Cell
from forge.app.known_kernel import require_kernel
from forge.app.plain_events import HasEvents
from forge.app.user.home import RUNS_FOLDER
from forge.domain.shape_slug import shape_slug
from forge.errors import BlobCorrupt
from forge.ledger.blobs import BlobStore
from forge.ledger.plain_rows import PlainEvent

COLUMNS = ("kind", "name", "observed", "threshold", "verdict", "event", "sha256", "path")
PLACES = "SELECT status, promoted_seq FROM kernels WHERE kernel_id = ?"
"""Query for a kernel's status and the number of its promotion's event."""
Row = tuple[Cell, ...]
Document = Mapping[str, Any]  # Any: a JSON document, validated when it was recorded


def why(workspace: HasEvents, kernel_id: str) -> Answer:
    """Return everything that a promotion rests on, with stored bytes hashed again; raise UnknownName."""
    with workspace.publication.tables() as connection:
        require_kernel(connection, kernel_id)
        status, promoted_seq = connection.execute(PLACES, (kernel_id,)).fetchone()
    promoted = workspace.event(promoted_seq)
    event = promoted.event
    verified, benchmark = workspace.event(event["verified_seq"]), workspace.event(event["benchmark_seq"])
    checkpoint = _covering(workspace, promoted_seq)
    rows = (
        *_gates("gate of verification", verified.event["gates"], verified.seq),
        *_gates("rule of promotion", event["gates"], promoted.seq),
        *_measured(workspace, benchmark),
        *_baselines(workspace, benchmark.event["baseline_seqs"]),
        *_stored(workspace, verified, benchmark, event),
        _signed(checkpoint),
    )
    return Answer(
        f"{kernel_id}: {status}",
        COLUMNS,
        rows,
        notes=(
            f"{event['evidence_level']} evidence of a {event['benchmark_scope']} on "
            f"{event['task']['target']['gpu']}: it says nothing of a whole model",
        ),
        shown=tuple(name for name in COLUMNS if name != "path"),
        more=_document(promoted, verified, benchmark, status=status, checkpoint=checkpoint),
    )


def _gates(kind: str, gates: Iterable[Document], seq: int) -> Iterator[Row]:
    for gate in gates:
        yield kind, gate["name"], gate["observed"], gate["threshold"], gate["verdict"], seq, None, None


def _measured(workspace: HasEvents, benchmark: PlainEvent) -> Iterator[Row]:
    """Yield a workload's speedups and times, and the place of its raw samples."""
    for timing in benchmark.event["workloads"]:
        shape = shape_slug(timing["shape"])
        for one in timing["speedups"]:
            name = f"{shape} over {one['baseline']}"
            yield "speedup", name, _interval(one["interval"]), None, None, benchmark.seq, None, None
        confirmation = timing.get("confirmation")  # older events have no such field
        for one in confirmation["speedups"] if confirmation else ():
            name = f"{shape} over {one['baseline']}, measured once more"
            yield "speedup", name, _interval(one["interval"]), None, None, benchmark.seq, None, None
        floor = f"floor {timing['floor_ns']:.6g} ns"
        yield "control", shape, _interval(timing["control"]), None, None, benchmark.seq, None, None
        yield "time", shape, _time(timing["candidate"]), floor, None, benchmark.seq, None, None
        yield _blob(workspace, "samples", shape, timing["samples_sha256"], benchmark.seq)


def _interval(interval: Document) -> str:
    return f"{interval['ratio']:.4g} ({interval['low']:.4g} to {interval['high']:.4g})"


def _time(candidate: Document) -> str:
    return f"median {candidate['median_ns']:.6g} ns of {candidate['n']} rounds by {candidate['method']}"


def _baselines(workspace: HasEvents, seqs: Iterable[int]) -> Iterator[Row]:
    for seq in seqs:
        recorded = workspace.event(seq)
        if recorded.type == "BaselineRecorded":
            name = f"{shape_slug(recorded.event['shape'])}, {recorded.event['kind']}"
            observed = f"median {recorded.event['timing']['median_ns']:.6g} ns"
            yield "baseline", name, observed, None, None, seq, None, None


def _stored(workspace: HasEvents, verified: PlainEvent, benchmark: PlainEvent, event: Document) -> Iterator[Row]:
    """Yield the bytes behind the events, each hashed again."""
    yield _blob(workspace, "report", "verification", verified.event["report_sha256"], verified.seq)
    yield _blob(workspace, "report", "benchmark", benchmark.event["report_sha256"], benchmark.seq)
    yield _blob(workspace, "policy", "of the promotion", event["policy_sha256"], verified.seq)
    for file in event["files"]:
        yield _blob(workspace, "source", file["path"], file["sha256"], verified.seq)
    if event["artifact_sha256"] is not None:
        yield _blob(workspace, "artifact", "what was built", event["artifact_sha256"], verified.seq)


def _blob(workspace: HasEvents, kind: str, name: str, digest: str, seq: int) -> Row:
    blobs = BlobStore(workspace.home / RUNS_FOLDER / "cas")
    path = blobs.path(digest)
    try:
        observed = f"{len(blobs.get(digest))} bytes"
        held = "as recorded"
    except BlobCorrupt:
        observed, held = None, "altered" if path.exists() else "missing"
    return kind, name, observed, None, held, seq, digest, path.relative_to(workspace.home).as_posix()


def _covering(workspace: HasEvents, seq: int) -> PlainEvent | None:
    """Return the first checkpoint that covers an event."""
    found = (one for one in workspace.events("CheckpointPublished") if one.seq > seq and one.event["size"] >= seq)
    return next(found, None)


def _signed(checkpoint: PlainEvent | None) -> Row:
    if checkpoint is None:
        return "checkpoint", "none covers the promotion yet", None, None, "unsigned", None, None, None
    observed = f"root {checkpoint.event['root_hash']}"
    name = f"over the first {checkpoint.event['size']} events"
    return "checkpoint", name, observed, None, "signed", checkpoint.seq, None, None


def _document(
    promoted: PlainEvent,
    verified: PlainEvent,
    benchmark: PlainEvent,
    *,
    status: str,
    checkpoint: PlainEvent | None,
) -> dict[str, object]:
    """Return the events behind the rows, whole, with their hashes."""
    told = (("promotion", promoted), ("verification", verified), ("benchmark", benchmark))
    events = {
        name: {"seq": one.seq, "event_hash": one.event_hash, "recorded_at": one.recorded_at} | one.event
        for name, one in told
    }
    signed = checkpoint and {
        "seq": checkpoint.seq,
        "size": checkpoint.event["size"],
        "root": checkpoint.event["root_hash"],
    }
    return {"kernel_id": promoted.event["kernel_id"], "status": status, **events, "checkpoint": signed}
