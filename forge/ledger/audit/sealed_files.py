"""Compares the files in a sealed run's folder with the digests that the run's events name.

Its manifest only says that the folder is as it was sealed. A person reads the candidate, the brief and the reports
there. The samples are compared where their numbers are.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from forge.errors import UsageError
from forge.ledger.audit.each_ledger import Row
from forge.ledger.audit.report import MALFORMED_ERRORS, AuditProblem
from forge.ledger.audit.samples import Document
from forge.proof.files import read

TYPES = (
    *("PromptRendered", "CandidateSubmitted", "CandidateVerified", "CandidateRejected"),
    *("BenchmarkRecorded", "BenchmarkFailed", "RunSealed"),
)
"""Types of the events that name a file of a run, and the event that seals it."""
_VERIFICATION = "verification_report.json"
_BENCHMARK = "benchmark_report.json"


def sealed_file_problems(rows: Iterable[Row], runs: Path) -> Iterator[AuditProblem]:
    """Yield a problem for each file of a sealed run that isn't the one which its events name."""
    named: dict[str, dict[str, str | None]] = {}
    for seq, kind, payload in rows:
        try:
            event = json.loads(payload)
            files = named.setdefault(event["run_id"], {})
            if kind == b"RunSealed":
                yield from _of_folder(seq, runs / event["run_id"], files)
            else:
                _name(files, kind, event)
        except (*MALFORMED_ERRORS, UsageError):
            continue  # the checks of the payload, the report and the manifest tell it


def _name(files: dict[str, str | None], kind: bytes, event: Document) -> None:
    """Add the files that an event names; a submission takes away what is about the one before."""
    match kind:
        case b"PromptRendered":
            files["agent_prompt.md"] = event["rendered_sha256"]
        case b"CandidateSubmitted":
            prompt = files.get("agent_prompt.md")
            files.clear()
            files["agent_prompt.md"] = prompt
            files |= {f"candidate/{one['path']}": one["sha256"] for one in event["files"]["files"]}
        case b"CandidateVerified":
            files[_VERIFICATION] = event["report_sha256"]
        case b"CandidateRejected" if event["stage"] != "submit":
            files[_VERIFICATION] = event["report_sha256"]
        case b"BenchmarkRecorded" | b"BenchmarkFailed":
            files[_BENCHMARK] = event["report_sha256"]


def _of_folder(seq: int, folder: Path, files: dict[str, str | None]) -> Iterator[AuditProblem]:
    listed = {one["path"]: one["sha256"] for one in json.loads(read(folder / "manifest.json"))["files"]}
    for name, digest in sorted(files.items()):
        if digest is not None and listed.get(name) != digest:
            yield AuditProblem(seq, f"run {folder.name}/{name}", digest, str(listed.get(name, "missing")))
