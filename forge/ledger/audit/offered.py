"""Derives what published documents must say of a kernel's slot and shapes, independent of the publisher."""

from collections.abc import Sequence

from forge.ledger.audit.rule import counted_measurement, speedup_over
from forge.ledger.audit.samples import Document


def offered(promotion: Document, measured_at: str, held_seq: int | None) -> Document:
    """Return the fields of a snapshot's kernel that no promotion has under the same name.

    `measured_at` is when its benchmark was recorded, `held_seq` the first replication that held.
    """
    task = promotion["task"]
    return {
        "op": task["op"],
        "gpu": task["target"]["gpu"],
        "dtype": task["dtype"],
        "language": task["language"],
        "sha256": next(file["sha256"] for file in promotion["files"] if file["path"] == "kernel.py"),
        "verified": _columns(promotion["coverage"]["verified"]),
        "domain": promotion.get("domain"),
        "measured_at": measured_at,
        "replicated_seq": held_seq,
    }


def _columns(shapes: Sequence[Document]) -> list[Document]:
    """Return shapes as axis -> the size of each, one document for each set of axes."""
    by_axes: dict[tuple[str, ...], list[Document]] = {}
    for shape in shapes:
        by_axes.setdefault(tuple(sorted(shape)), []).append(shape)
    return [{axis: [one[axis] for one in alike] for axis in axes} for axes, alike in by_axes.items()]


def further_shape(event: Document, *, is_proven: bool) -> Document:
    """Return what a registry entry must say of a further shape."""
    stated = {"shape": event["shape"], "proven": is_proven, "baseline": event["baseline_used"]}
    stated["samples_sha256"] = event["samples_sha256"]
    if not is_proven:
        return stated | {"speedup": None, "candidate_median_ns": None, "baseline_median_ns": None}
    measured = counted_measurement(event["timing"])
    final = speedup_over(measured, event["baseline_used"])
    return stated | {
        "speedup": final["interval"],
        "candidate_median_ns": measured["candidate"]["median_ns"],
        "baseline_median_ns": final["baseline_median_ns"],
    }
