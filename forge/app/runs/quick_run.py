"""Answers what a run is from the tables at the ledger's head, for a run with nothing left to finish."""

import json
import sqlite3
from pathlib import Path

from forge.app.user.home import RUNS_FOLDER
from forge.ledger.runs.names import OPEN_PREFIX

Data = dict[str, object]
UNJUDGED = frozenset({"planned", "prompt_ready", "candidate_ready", "aborted"})
"""States in which nothing may be left to finish. After a judgement the whole command looks, unless it is sealed."""
JUDGED = """
    SELECT type, payload FROM event WHERE correlation_id = ? AND type IN (
        'CandidateSubmitted', 'CandidateRejected', 'CandidateVerified', 'BenchmarkRecorded', 'BenchmarkFailed')
    ORDER BY seq DESC LIMIT 1
"""
REPORTS = {
    "CandidateRejected": "verification_report.json",
    "CandidateVerified": "verification_report.json",
    "BenchmarkFailed": "benchmark_report.json",
    "BenchmarkRecorded": "benchmark_report.json",
}
"""Type of an event -> name of its report in the run's folder."""


def chosen_run(runs: list[Data], name: str) -> Data | None:
    """Return the run that a name means; None if it means none or several, or may have work left."""
    before = name.removeprefix("last-") if name.startswith("last-") else "0" if name == "last" else ""
    if before.isdigit() and name.isascii() and len(before) < 10:
        found = runs[len(runs) - 1 - int(before) :][:1] if int(before) < len(runs) else []
    elif name[:1] == "r" and name[1:].isdigit() and name.isascii() and len(name) < 10:
        found = runs[int(name[1:]) - 1 :][:1] if int(name[1:]) > 0 else []
    else:
        found = [one for one in runs if one["run_id"] == name] or [
            one for one in runs if str(one["run_id"]).startswith(name)
        ]
    if len(found) != 1 or not (found[0]["sealed"] or found[0]["state"] in UNJUDGED):
        return None
    return found[0]


def run_folder(home: Path, run_id: str) -> Path:
    """Return the folder in which a run's files are now."""
    sealed = home / RUNS_FOLDER / run_id
    return sealed if sealed.exists() else sealed.with_name(f"{OPEN_PREFIX}{run_id}")


def report_of(ledger: sqlite3.Connection, home: Path, run_id: str) -> str | None:
    """Return the path of the report of a run's latest judgement; None without one."""
    row = ledger.execute(JUDGED, (run_id,)).fetchone()
    digest = None if row is None else json.loads(row[1]).get("report_sha256")
    if row is None or row[0] not in REPORTS or not isinstance(digest, str):
        return None
    report = run_folder(home, run_id) / REPORTS[row[0]]
    return str(report if report.is_file() else home / RUNS_FOLDER / "cas" / digest[:2] / digest)
