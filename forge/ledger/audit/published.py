"""Checks the files published beside a ledger: each document must say what the events that it names say.

A document may be behind the ledger. A document that was never published isn't reported, because it can be derived
again.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from forge.errors import UsageError
from forge.ledger.audit.described import DescribedOperations
from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.offered import further_shape, offered
from forge.ledger.audit.published_kernels import kernel_problems
from forge.ledger.audit.published_models import PublishedModels
from forge.ledger.audit.report import MALFORMED_ERRORS, AuditProblem
from forge.ledger.audit.rule import counted_measurement, speedup_over
from forge.ledger.audit.samples import SUPERSEDED, Document
from forge.proof.files import read

_FOLDER = "kernel_registry"
_DOCUMENTS = ("verified_kernels.json", "leaderboard.json", "versions.json", "current.json")
"""Names of the published documents that are checked."""
_RANKING = "leaderboard.json"
"""Name of the document that leaves out kernels that aren't on offer."""
_TYPES = (
    "'BenchmarkInvalidated', 'BenchmarkRecorded', 'EnvironmentCaptured', 'KernelPromoted', 'KernelRevoked', "
    "'ModelMeasured', 'OperationDescribed', 'ReplicationRecorded', 'ShapeTimed'"
)
"""Types of the events that the documents repeat, as SQL."""
_ON_OFFER = ("active", "deprecated")
"""Statuses of kernels that a lookup may answer with."""


class Published:
    """The documents of a registry folder, read before the ledger was."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._found = {name: content for name in _DOCUMENTS if (content := _content(folder / name)) is not None}
        self._promoted: dict[str, tuple[int, Document]] = {}
        self._benchmarks: dict[int, Document] = {}
        self._shapes: dict[int, Document] = {}
        self._invalid: dict[int, int] = {}
        """Benchmark -> the event that withdrew it."""
        self._withdrawn: dict[str, int] = {}
        """Kernel -> the event that revoked it or contradicts its measurement."""
        self._held: dict[str, int] = {}
        """Kernel -> its first replication that held and counts."""
        self._recorded_at: dict[int, str] = {}
        """Event -> when it was recorded."""
        self._architectures: set[tuple[str, str]] = set()
        """GPU and architecture of every machine that was captured."""
        self._described = DescribedOperations(folder)
        self._models = PublishedModels(folder)
        snapshot = _snapshot(self._found.get("current.json"))
        self._snapshot = snapshot and (snapshot, _content(folder / snapshot))

    @classmethod
    def beside(cls, ledger: Path) -> "Published":
        """Read the documents beside a ledger."""
        return cls(ledger.parent / _FOLDER)

    def problems(self, connection: sqlite3.Connection) -> list[AuditProblem]:
        """Return a problem for each field that differs from the events."""
        query = f"SELECT seq, type, payload, recorded_at FROM event WHERE type IN ({_TYPES}) ORDER BY seq"  # noqa: S608
        found: list[AuditProblem] = []
        try:
            for seq, kind, payload, recorded_at in connection.execute(query):
                self._recorded_at[seq] = recorded_at.decode()
                event = json.loads(payload)
                apart = {b"ModelMeasured": self._models.take, b"OperationDescribed": self._described.take}.get(kind)
                if apart is not None:
                    apart(seq, event)
                else:
                    self._take(seq, kind, event)
        except MALFORMED_ERRORS:
            return []  # the check of the rows reports it
        for name, content in self._found.items():
            try:
                found += self._of_document(connection, name, content)
            except MALFORMED_ERRORS as error:
                found.append(AuditProblem(None, f"published {name}", "a document of its form", repr(error)[:200]))
        found += self._models.problems()
        for kernel_id, (seq, promotion) in sorted(self._promoted.items()):
            found += kernel_problems(self._folder / "kernels" / kernel_id, seq, promotion)
        return found

    def _take(self, seq: int, kind: bytes, event: Document) -> None:
        match kind:
            case b"KernelPromoted":
                self._promoted[event["kernel_id"]] = seq, event
            case b"BenchmarkRecorded":
                self._benchmarks[seq] = event
            case b"ShapeTimed":
                self._shapes[seq] = event
            case b"BenchmarkInvalidated":
                self._invalid.setdefault(event["benchmark_seq"], seq)
            case b"KernelRevoked":
                self._withdrawn.setdefault(event["kernel_id"], seq)
            case b"EnvironmentCaptured":
                gpu = event["environment"]["gpu"] or {}
                self._architectures.add((str(gpu.get("slug")), str(gpu.get("arch"))))
            case b"ReplicationRecorded" if event["outcome"] == "held" and _counts(event):
                self._held.setdefault(event["kernel_id"], seq)
            case _ if event["outcome"] == "contradicted":
                self._withdrawn.setdefault(event["kernel_id"], seq)

    def _withdrawn_at(self, kernel_id: str, seq: int) -> bool:
        """Return whether an event up to `seq` takes the kernel off offer."""
        benchmark_seq = self._promoted[kernel_id][1]["benchmark_seq"]
        ends = (self._withdrawn.get(kernel_id), self._invalid.get(benchmark_seq))
        return any(end is not None and end <= seq for end in ends)

    def _of_document(self, connection: sqlite3.Connection, name: str, content: bytes) -> Iterator[AuditProblem]:
        document = json.loads(content)
        seq = document["ledger"]["seq"]
        row = connection.execute("SELECT event_hash FROM event WHERE seq = ?", (seq,)).fetchone()
        head = row[0].hex() if row else "no such event"
        if document["ledger"]["event_hash"] != head:
            yield AuditProblem(
                seq, f"published {name}: ledger.event_hash", head, str(document["ledger"]["event_hash"])
            )
        if name == "current.json":
            yield from self._of_snapshot(document, seq)
            return
        kernels = list(_kernels(name, document))
        yield from self._of_all(name, kernels, seq)
        for kernel in kernels:
            yield from self._of_kernel(name, kernel)
            yield from self._of_status(name, kernel, seq)

    def _of_all(self, name: str, kernels: list[Document], seq: int) -> Iterator[AuditProblem]:
        """Check that a document has exactly the kernels that were promoted up to `seq`."""
        wanted = {kernel_id for kernel_id, (place, _) in self._promoted.items() if place <= seq}
        if name == _RANKING:
            wanted = {kernel_id for kernel_id in wanted if not self._withdrawn_at(kernel_id, seq)} - self._stale()
        for kernel_id in sorted(wanted ^ {kernel["kernel_id"] for kernel in kernels}):
            stated = "is in it" if kernel_id not in wanted else "isn't in it"
            yield AuditProblem(None, f"published {name}: {kernel_id}", "the kernels that events promoted", stated)

    def _stale(self) -> set[str]:
        """Return the kernels whose protocol is superseded, as the entries say; no event says it."""
        entries = json.loads(self._found.get("verified_kernels.json", b'{"kernels": []}'))["kernels"]
        return {entry["kernel_id"] for entry in entries if entry["status"] == "evidence_stale"}

    def _of_status(self, name: str, kernel: Document, seq: int) -> Iterator[AuditProblem]:
        kernel_id = kernel["kernel_id"]
        if kernel.get("status") in _ON_OFFER and kernel_id in self._promoted and self._withdrawn_at(kernel_id, seq):
            yield AuditProblem(
                None, f"published {name}: {kernel_id}: status", "withdrawn, as an event says", str(kernel["status"])
            )

    def _of_kernel(self, name: str, kernel: Document) -> Iterator[AuditProblem]:
        kernel_id = kernel["kernel_id"]
        if kernel_id not in self._promoted:
            return
        seq, event = self._promoted[kernel_id]
        expected = {field: event[field] for field in kernel.keys() & event.keys()}
        expected |= {"promoted_seq": seq} if "promoted_seq" in kernel else {}
        yield from _named(seq, f"published {name}: {kernel_id}", differences(expected, kernel, ""))
        if "benchmark" in kernel:
            stated = differences(self._benchmark(event), kernel["benchmark"], "benchmark")
            yield from _named(seq, f"published {name}: {kernel_id}", stated)
        yield from _named(seq, f"published {name}: {kernel_id}", self._of_further(event, kernel))
        for place, point in enumerate(kernel.get("points", ())):
            stated = differences(self._point(event, point), point, f"points[{place}]")
            yield from _named(seq, f"published {name}: {kernel_id}", stated)

    def _benchmark(self, promotion: Document) -> Document:
        """Return what a registry entry must say of its benchmark."""
        event = self._benchmarks[promotion["benchmark_seq"]]
        fields = ("attempt", "baseline_seqs", "env_sha256", "isolation", "report_sha256", "workloads")
        screened = ("contenders",) if "contenders" in event else ()  # older events have none
        return {name: event[name] for name in (*fields, *screened)} | {
            "seq": promotion["benchmark_seq"],
            "speedup": promotion["speedup"]["ratio"],
            "candidate_latency_us": promotion["candidate_median_ns"] / 1000,
            "baseline_latency_us": promotion["baseline_median_ns"] / 1000,
            "samples_sha256": event["workloads"][0]["samples_sha256"],
        }

    def _further(self, promotion: Document) -> list[Document]:
        """Return what was measured at the further shapes of the task."""
        seqs = self._benchmarks[promotion["benchmark_seq"]].get("further_seqs", ())
        return [self._shapes[seq] for seq in seqs]

    def _of_further(self, promotion: Document, kernel: Document) -> Iterator[Difference]:
        """Check that a document names exactly the proven shapes, and the unproven ones, that events have."""
        further, covered = self._further(promotion), promotion["coverage"]["measured"]
        unproven = [one["shape"] for one in further if one["shape"] not in covered]
        if "points" in kernel:
            stated = [point["shape"] for point in kernel["points"] if point.get("regime", "cold") == "cold"]
            yield from differences(covered, stated, "points")
            yield from differences(unproven, [one["shape"] for one in kernel.get("unproven", ())], "unproven")
        if "benchmark" in kernel:
            wanted = [further_shape(one, is_proven=one["shape"] in covered) for one in further]
            yield from differences(wanted, kernel.get("further_shapes", []), "further_shapes")

    def _point(self, promotion: Document, point: Document) -> Document:
        """Return what a lookup must say of a shape that was measured, in one regime."""
        event = self._benchmarks[promotion["benchmark_seq"]]
        (workload,), used = event["workloads"], event["baseline_used"]
        for one in self._further(promotion):
            if one["timing"] and one["shape"] == point["shape"]:
                workload, used = one["timing"], one["baseline_used"]
        timed = workload
        if point.get("regime", "cold") == "resident":
            timed = workload["residency"]["timing"]
            used = min((one["baseline_median_ns"], one["baseline"]) for one in timed["speedups"])[1]
        measured = counted_measurement(timed)
        final = speedup_over(measured, used)
        return {
            "baseline": used,
            "baseline_median_ns": final["baseline_median_ns"],
            "low": final["interval"]["low"],
            "high": final["interval"]["high"],
            "speedup": final["interval"]["ratio"],
            "median_ns": measured["candidate"]["median_ns"],
            "samples_sha256": workload["samples_sha256"],
            "method": measured["candidate"]["method"],
            "shape": workload["shape"],
            "provisional": True if workload["shape"] != promotion["task"]["shape"] else None,
        }

    def _of_snapshot(self, pointer: Mapping[str, Any], seq: int) -> Iterator[AuditProblem]:  # Any: JSON
        name, content = self._snapshot or (str(pointer["snapshot"]), None)
        found = "missing" if content is None else hashlib.sha256(content).hexdigest()
        if found != pointer["sha256"]:
            yield AuditProblem(None, f"published {name}", str(pointer["sha256"]), found)
        elif content is not None:
            stated = json.loads(content)
            kernels = stated["kernels"]
            for gpu, arch in sorted(stated["gpus"].items()):
                if (gpu, arch) not in self._architectures:
                    yield AuditProblem(
                        None, f"published {name}: gpus.{gpu}", "an architecture of an event", str(arch)
                    )
            yield from self._described.problems(name, stated.get("ops", {}), seq)
            yield from self._of_all(name, kernels, seq)
            for kernel in kernels:
                # the pointed-to bytes are `kernel.py`'s here, and no field of the event
                yield from self._of_kernel(name, {key: value for key, value in kernel.items() if key != "sha256"})
                yield from self._of_status(name, kernel, seq)
                yield from self._of_offered(name, kernel, seq)

    def _of_offered(self, name: str, kernel: Document, seq: int) -> Iterator[AuditProblem]:
        """Check what a lookup decides by: slot, verified shapes, domain, replication."""
        kernel_id = kernel["kernel_id"]
        if kernel_id in self._promoted:
            promoted_seq, event = self._promoted[kernel_id]
            held = self._held.get(kernel_id, seq + 1)
            expected = offered(event, self._recorded_at[event["benchmark_seq"]], held if held <= seq else None)
            yield from _named(promoted_seq, f"published {name}: {kernel_id}", differences(expected, kernel, ""))


def _counts(replication: Document) -> bool:
    """Return whether it was measured by a current protocol."""
    return all(one.get("protocol") not in SUPERSEDED for one in replication["workloads"])


def _kernels(name: str, document: Document) -> Iterator[Document]:
    match name:
        case "leaderboard.json":
            for slot in document["slots"]:
                yield from slot["kernels"]
        case "versions.json":
            for versions in document["families"].values():
                yield from versions
        case _:
            yield from document["kernels"]


def _named(seq: int, what: str, found: Iterator[Difference]) -> Iterator[AuditProblem]:
    for field, expected, actual in found:
        yield AuditProblem(seq, f"{what}: {field}", expected[:500], actual[:500])


def _snapshot(pointer: bytes | None) -> str | None:
    """Return the snapshot's name; None if the pointer names no file in the same folder."""
    try:
        name = json.loads(pointer)["snapshot"] if pointer is not None else None
    except MALFORMED_ERRORS:
        return None
    return name if isinstance(name, str) and "/" not in name else None


def _content(path: Path) -> bytes | None:
    try:
        return read(path)
    except UsageError:  # also for a pipe, which would hold the check up, or a file without end
        return None
