"""Compares two runs: the candidates' sources, the gates that differ, and the times with their intervals."""

import difflib
from collections.abc import Mapping

from forge.app.plain_events import HasEvents
from forge.app.runs.benchmark_answer import timed
from forge.app.stored.run_documents import RunDocuments
from forge.app.user.home import RUNS_FOLDER
from forge.domain.candidate_files import REQUIRED_FILES
from forge.errors import IntegrityError
from forge.ledger.blobs import BlobStore
from forge.ledger.plain_rows import Document
from forge.ledger.runs.names import CAS

Data = dict[str, object]
COMPARED_LINES = 2000
"""Largest number of lines of a file that is compared line by line. The comparison's work grows with the square of
repeated lines, and its text is untrusted."""
SHOWN_FIELDS = ("run_id", "task_id", "state", "simulated", "candidate", "author", "reason", "kernel_id")
"""Fields of a run's summary that a comparison repeats."""


def compare_runs(home: HasEvents, before: RunDocuments, after: RunDocuments) -> Data:
    """Return what differs between two runs, the first as `a` and the second as `b`."""
    blobs = BlobStore(home.home / RUNS_FOLDER / CAS)
    return {
        "runs": [{name: run.summary[name] for name in SHOWN_FIELDS} for run in (before, after)],
        "same_task": before.task_id == after.task_id,
        "same_machine": _same_machine(home, before, after),
        "sources": _compared_sources(_sources(blobs, before), _sources(blobs, after)),
        "gates": _compared_gates(_gates(before), _gates(after)),
        "times": {"a": _times(before), "b": _times(after)},
    }


def _sources(blobs: BlobStore, run: RunDocuments) -> dict[str, str]:
    if run.submitted is None:
        return {}
    files = {one["path"]: one["sha256"] for one in run.submitted.event["files"]["files"]}
    return {name: blobs.get(files[name]).decode() for name in REQUIRED_FILES}


def _compared_sources(before: Mapping[str, str], after: Mapping[str, str]) -> list[Data]:
    """Return each file that is in a run, with its unified diff if both runs have it."""
    return [
        {"file": name, **_compared_file(name, before.get(name), after.get(name))}
        for name in REQUIRED_FILES
        if name in before or name in after
    ]


def _compared_file(name: str, before: str | None, after: str | None) -> Data:
    """Return how a file changed. The lines are untrusted, and None if there are too many to compare."""
    if before is None or after is None:
        return {"change": "only in b" if before is None else "only in a", "untrusted_lines": []}
    if before == after:
        return {"change": "same", "untrusted_lines": []}
    sides = before.split("\n"), after.split("\n")
    if max(map(len, sides)) > COMPARED_LINES:
        return {"change": "changed", "untrusted_lines": None}
    lines = difflib.unified_diff(*sides, f"a/{name}", f"b/{name}", lineterm="")
    return {"change": "changed", "untrusted_lines": list(lines)}


def _gates(run: RunDocuments) -> dict[str, Document]:
    """Return the gates of the run's latest judgement, in their order."""
    judged = run.get("CandidateVerified") or run.get("CandidateRejected")
    return {} if judged is None else {gate["name"]: gate for gate in judged.event["gates"]}


def _compared_gates(before: Mapping[str, Document], after: Mapping[str, Document]) -> list[Data]:
    """Return the gates whose verdict or observed value differs; a side is None where the gate wasn't reached."""
    return [
        {"name": name, "a": _side(before.get(name)), "b": _side(after.get(name))}
        for name in dict.fromkeys((*before, *after))
        if _side(before.get(name)) != _side(after.get(name))
    ]


def _side(gate: Document | None) -> Data | None:
    return None if gate is None else {name: gate[name] for name in ("verdict", "observed", "threshold")}


def _times(run: RunDocuments) -> Data | None:
    """Return the run's newest measurement, as `forge bench` answers it; None if nothing was measured."""
    event = _measured(run)
    if event is None:
        return None
    answer = timed(event)
    return {name: answer[name] for name in ("verdict", "reason", "baseline_used", "workloads")}


def _measured(run: RunDocuments) -> Document | None:
    """Return the run's newest benchmark that has times; None without one."""
    found = [run.get(name) for name in ("BenchmarkRecorded", "BenchmarkFailed")]
    with_times = [one for one in found if one is not None and one.event["workloads"]]
    return max(with_times, key=lambda one: one.seq).event if with_times else None


def _same_machine(home: HasEvents, before: RunDocuments, after: RunDocuments) -> bool | None:
    """Return whether both were timed on machines of one kind; None if one wasn't timed."""
    kinds = []
    for run in (before, after):
        timing = run.get("BenchmarkRecorded") or run.get("BenchmarkFailed")
        if timing is None or not timing.event["workloads"]:
            return None
        kinds.append(_kind_of_machine(home, timing.event["env_sha256"]))
    return kinds[0] == kinds[1]


def _kind_of_machine(home: HasEvents, env_sha256: str) -> str:
    for one in home.events("EnvironmentCaptured"):
        if one.event["env_sha256"] == env_sha256:
            return str(one.event["perf_key"])
    raise IntegrityError(
        f"a benchmark names environment {env_sha256!r}: expected an EnvironmentCaptured event that records it",
        hint="forge ledger verify",
    )
