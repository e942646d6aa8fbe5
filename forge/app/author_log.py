"""Finds what a candidate, its compiler or its tests said when it was refused, and the whole report."""

import orjson

from forge.app.workspace import Workspace
from forge.events import BenchmarkFailed, BenchmarkRecorded, CandidateRejected, CandidateVerified
from forge.lab.log_excerpt import excerpt
from forge.lab.sources.mending import place_to_mend
from forge.projections.runs import RunState

Data = dict[str, object]
REPORTS = {
    CandidateRejected: "verification_report.json",
    CandidateVerified: "verification_report.json",
    BenchmarkFailed: "benchmark_report.json",
    BenchmarkRecorded: "benchmark_report.json",
}
"""Event class -> name of its report in the run's folder."""
KERNEL = "kernel.py"
OPEN_GATES = frozenset({"sources", "build", "load", "own_tests"})
"""Gates whose guests are never asked at held-out shapes. Reports before `log_withheld` go by these names."""
Judged = CandidateRejected | CandidateVerified | BenchmarkFailed | BenchmarkRecorded


def author_log(workspace: Workspace, event: Judged) -> Data:
    """Return `log`, an excerpt, `mend`, the place to begin without one, and `report`, a path; each may be None."""
    if event.report_sha256 is None:
        return {"log": None, "mend": None, "report": None}
    folder = workspace.directory(event.run_id).path / REPORTS[type(event)]
    path = folder if folder.is_file() else workspace.blobs.path(event.report_sha256)
    report = orjson.loads(workspace.blobs.get(event.report_sha256))
    said = report.get("untrusted_log")
    found, run = None, workspace.find_run(event.run_id)
    files = _submitted(workspace, run)
    if isinstance(said, str) and said.strip():
        found = excerpt(said, files=files, withheld=_withheld(event, report))
    error = None if found is None else found.untrusted_error
    kept = [one["line"] for one in report.get("findings", ()) if one["kind"] == "state" and one["file"] == KERNEL]
    mend = None
    if found is None or found.line is None:
        mend = _place(workspace, event, run, files, error, keeps_at=kept[0] if kept else None)
    return {"log": None if found is None else found.document(), "mend": mend, "report": str(path)}


def _place(
    workspace: Workspace,
    event: Judged,
    run: RunState,
    files: dict[str, bytes],
    untrusted_error: str | None,
    *,
    keeps_at: int | None,
) -> Data | None:
    """Return the line of a refused kernel with which to begin; None if it wasn't refused or the line isn't clear."""
    if (
        not isinstance(event, CandidateRejected) or event.reason.code == "BAD_SUBMISSION"
    ):  # the author's tests say where
        return None
    if run.submitted is None or run.task is None or KERNEL not in files:
        return None
    task, entry = run.task.event.task, run.submitted.event.files.entry_point
    named = {"entry": entry or task.op, "language": task.language, "code": event.reason.code}
    shown = event.counterexample_sha256
    wrong: Data = {} if shown is None else orjson.loads(workspace.blobs.get(shown))
    output, begins = wrong.get("output"), wrong.get("wrong_from")
    place = place_to_mend(
        files[KERNEL],
        **named,
        untrusted_error=untrusted_error,
        wrong_output=output if isinstance(output, str) else None,
        wrong_from=begins if isinstance(begins, int) else None,
        keeps_at=keeps_at,
    )
    return None if place is None else place.document()


def run_log(workspace: Workspace, run: RunState) -> Data:
    """Return the log and the report of the latest judgement of a run; both are None without one."""
    judged = [one for one in (run.rejection, run.failure, run.benchmark, run.verified) if one is not None]
    if not judged:
        return {"log": None, "mend": None, "report": None}
    return author_log(workspace, max(judged, key=lambda one: one.seq).event)


def _withheld(event: Judged, report: Data) -> bool:
    """Return whether the log's words may name held-out shapes. A timed guest is asked at the public shape alone."""
    if isinstance(event, BenchmarkFailed | BenchmarkRecorded):
        return False
    said = report.get("log_withheld")
    if isinstance(said, bool):
        return said
    return not (event.gates and event.gates[-1].name in OPEN_GATES)


def _submitted(workspace: Workspace, run: RunState) -> dict[str, bytes]:
    if run.submitted is None:
        return {}
    return {file.path: workspace.blobs.get(file.sha256) for file in run.submitted.event.files.files}
