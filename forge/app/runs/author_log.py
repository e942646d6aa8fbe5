"""Finds what a candidate, its compiler or its tests said when it was refused, and the whole report."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from forge.app.runs.quick_run import REPORTS, run_folder
from forge.app.stored.run_documents import JUDGEMENTS, RunDocuments, of_state
from forge.app.user.home import RUNS_FOLDER
from forge.ledger.blobs import BlobStore
from forge.ledger.plain_rows import Document
from forge.ledger.runs.names import CAS

if TYPE_CHECKING:
    from forge.app.workspace import Workspace
    from forge.events import BenchmarkFailed, BenchmarkRecorded, CandidateRejected, CandidateVerified

    Judged = CandidateRejected | CandidateVerified | BenchmarkFailed | BenchmarkRecorded

Data = dict[str, object]
NOTHING: Data = {"log": None, "mend": None, "report": None}
"""Answer for a run without a log, a hint or a report."""
KERNEL = "kernel.py"
"""Name of the kernel's file, to whose lines a log refers."""
OPEN_GATES = frozenset({"sources", "build", "load", "own_tests"})
"""Gates whose guests are never asked at held-out shapes. Reports before `log_withheld` go by these names."""


def author_log(workspace: "Workspace", event: "Judged") -> Data:
    """Return `log`, an excerpt, `mend`, the place to begin without one, and `report`, a path; each may be None."""
    if event.report_sha256 is None:
        return NOTHING
    run = of_state(workspace.find_run(event.run_id))
    return _said(workspace.home, event.TYPE, event.model_dump(mode="json"), run)


def run_log(home: Path, run: RunDocuments) -> Data:
    """Return the log and the report of the latest judgement of a run; both are None without one."""
    judged = run.get(*JUDGEMENTS)
    if judged is None or judged.event["report_sha256"] is None:
        return NOTHING
    return _said(home, judged.type, judged.event, run)


def _said(home: Path, type_name: str, event: Document, run: RunDocuments) -> Data:
    """Return what the report of a judgement holds for the candidate's author."""
    blobs = BlobStore(home / RUNS_FOLDER / CAS)
    copy = run_folder(home, run.run_id) / REPORTS[type_name]
    path = copy if copy.is_file() else blobs.path(event["report_sha256"])
    report = orjson.loads(blobs.get(event["report_sha256"]))
    said = report.get("untrusted_log")
    found, files = None, _submitted(blobs, run)
    if isinstance(said, str) and said.strip():
        from forge.lab.log_excerpt import excerpt

        found = excerpt(said, files=files, withheld=_withheld(type_name, event, report))
    error = None if found is None else found.untrusted_error
    mend = None
    if type_name == "CandidateRejected" and (found is None or found.line is None):
        mend = _place(blobs, event, run, files, error, report.get("findings", ()))
    return {"log": None if found is None else found.document(), "mend": mend, "report": str(path)}


def _place(
    blobs: BlobStore,
    rejected: Document,
    run: RunDocuments,
    files: dict[str, bytes],
    untrusted_error: str | None,
    findings: Sequence[Document],
) -> Data | None:
    """Return the line of a refused kernel with which to begin; None if the line isn't clear."""
    code = rejected["reason"]["code"]
    if run.submitted is None or run.task is None or KERNEL not in files:
        return None
    from forge.lab.sources.mending import place_to_mend

    task, entry = run.task.event["task"], run.submitted.event["files"]["entry_point"]
    named = {"entry": entry or task["op"], "language": task["language"], "code": code}
    shown = rejected["counterexample_sha256"]
    wrong: Data = {} if shown is None else orjson.loads(blobs.get(shown))
    output, begins = wrong.get("output"), wrong.get("wrong_from")
    place = place_to_mend(
        files[KERNEL],
        **named,
        untrusted_error=untrusted_error,
        wrong_output=output if isinstance(output, str) else None,
        wrong_from=begins if isinstance(begins, int) else None,
        findings=[(one["kind"], one["file"], one["line"]) for one in findings],
    )
    return None if place is None else place.document()


def _withheld(type_name: str, event: Document, report: Data) -> bool:
    """Return whether the log's words may name held-out shapes. A timed guest is asked at the public shape alone."""
    if type_name in ("BenchmarkFailed", "BenchmarkRecorded"):
        return False
    said = report.get("log_withheld")
    if isinstance(said, bool):
        return said
    return not (event["gates"] and event["gates"][-1]["name"] in OPEN_GATES)


def _submitted(blobs: BlobStore, run: RunDocuments) -> dict[str, bytes]:
    if run.submitted is None:
        return {}
    return {one["path"]: blobs.get(one["sha256"]) for one in run.submitted.event["files"]["files"]}
