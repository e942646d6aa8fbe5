"""Compares each stored report of a verification, a benchmark or a replication with the event that names it."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.each_ledger import Row
from forge.ledger.audit.report import MALFORMED_ERRORS, AuditProblem
from forge.ledger.audit.samples import Document
from forge.ledger.audit.stored import stored_document

_JUDGED = ("CandidateVerified", "CandidateRejected")
TYPES = (*_JUDGED, "BenchmarkRecorded", "BenchmarkFailed", "ReplicationRecorded")
"""Types of the events that name a report."""
_ABOUT = ("candidate", "task_id", "attempt")
"""Fields in the reports of a run that say what they are about."""
_OF_JUDGEMENT = ("gates", "gates_sha256")
_OF_REPLICATION = ("kernel_id", "benchmark_seq", "outcome", "reason", "baseline_used", "workloads", "comparisons")
_OLDER_WITHOUT = ("built", "simulated")
"""Fields that the first reports lack."""


def report_problems(rows: Iterable[Row], runs: Path) -> Iterator[AuditProblem]:
    """Yield a problem for each field that a report and its event say differently; missing reports are told anyway."""
    for seq, kind, payload in rows:
        try:
            event = json.loads(payload)
            report = stored_document(runs, event["report_sha256"]) if event["report_sha256"] else None
            if report is not None:
                found = list(report_differences(kind.decode(), event, report, runs))
                yield from (AuditProblem(seq, *one) for one in found)
        except MALFORMED_ERRORS as error:
            yield AuditProblem(seq, "report", "a payload and a report of a known form", repr(error)[:200])


def report_differences(kind: str, event: Document, report: Document, runs: Path) -> Iterator[Difference]:
    """Yield where a report says something else than its event."""
    if kind in _JUDGED:
        expected = _of_judgement(kind, event, report)
        yield from _of_evidence(event, report, runs)
    elif kind == "ReplicationRecorded":
        expected = {name: event[name] for name in _OF_REPLICATION} | {"environment": event["env_sha256"]}
    else:
        expected = _of_benchmark(event)
    yield from differences(expected, report, "report")


def _of_judgement(kind: str, event: Document, report: Document) -> Document:
    """Return what the report of a verification must say; a reused one is about an earlier run, or other bytes."""
    accepted = kind == "CandidateVerified"
    expected = {name: event[name] for name in _OF_JUDGEMENT if name in event}
    expected["verdict"] = {"verdict": "accepted"} if accepted else {"verdict": "rejected", "reason": event["reason"]}
    expected |= {name: event[name] for name in _OLDER_WITHOUT if name in event and name in report}
    expected |= {"counterexample": None} if accepted else {"stage": event["stage"]}
    if event.get("reused_seq") is None:
        expected |= {name: event[name] for name in _ABOUT if name in event} | {"environment": event["env_sha256"]}
        expected |= {"isolation": event["isolation"]} if accepted else {}
    return expected


def _of_evidence(event: Document, report: Document, runs: Path) -> Iterator[Difference]:
    """Yield what the event of a verification says beyond its report."""
    for place, errors in enumerate(event.get("workloads", ())):
        if errors not in report["workloads"]:
            yield f"workloads[{place}]", "errors that the report has", str(errors)
    shapes = [errors["shape"] for errors in report["workloads"]]
    for shape in event.get("shapes_verified", ()):
        if shape not in shapes:
            yield "shapes_verified", "shapes at which the report has errors", str(shape)
    if "seeds_sha256" in event:
        seeds = json.dumps({"seeds": report["seeds"]}, separators=(",", ":"))
        yield from differences(hashlib.sha256(seeds.encode()).hexdigest(), event["seeds_sha256"], "seeds_sha256")
    if "artifact_sha256" in event and "built" in report:
        listing = stored_document(runs, event["artifact_sha256"]) if event["artifact_sha256"] else {"files": []}
        yield from differences(report["built"], listing and listing["files"], "artifact_sha256")


def _of_benchmark(event: Document) -> Document:
    """Return what the report of a benchmark must say."""
    expected = {name: event[name] for name in _ABOUT} | {"reason": event.get("reason")}
    if event["workloads"]:
        expected |= {"environment": event["env_sha256"]}
        expected |= {"isolation": event["isolation"]} if "isolation" in event else {}
    if event["workloads"] or event.get("stopped") is not None:
        expected |= {name: event[name] for name in ("workloads", "baseline_used")}
    return expected | ({"stopped": event["stopped"]} if "stopped" in event else {})
