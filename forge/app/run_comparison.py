"""Compares two runs: the candidates' sources, the gates that differ, and the times with their intervals."""

import difflib
from collections.abc import Mapping

from forge.app.benchmark_answer import timed
from forge.app.recorded_evidence import captured_environment
from forge.app.runs import run_summary
from forge.app.workspace import Workspace
from forge.domain.candidate import REQUIRED_FILES
from forge.domain.evidence import GateResult
from forge.projections.runs import RunState

Data = dict[str, object]
COMPARED_LINES = 2000
"""Largest number of lines of a file that is compared line by line. The comparison's work grows with the square of
repeated lines, and its text is untrusted."""
SHOWN_FIELDS = ("run_id", "task_id", "state", "simulated", "candidate", "author", "reason", "kernel_id")
"""Fields of a run's summary that a comparison repeats."""


def compare_runs(workspace: Workspace, before: RunState, after: RunState) -> Data:
    """Return what differs between two runs, the first as `a` and the second as `b`."""
    summaries = [run_summary(run) for run in (before, after)]
    return {
        "runs": [{name: summary[name] for name in SHOWN_FIELDS} for summary in summaries],
        "same_task": before.task_id == after.task_id,
        "same_machine": _same_machine(workspace, before, after),
        "sources": _compared_sources(_sources(workspace, before), _sources(workspace, after)),
        "gates": _compared_gates(_gates(before), _gates(after)),
        "times": {"a": _times(before), "b": _times(after)},
    }


def _sources(workspace: Workspace, run: RunState) -> dict[str, str]:
    if run.submitted is None:
        return {}
    files = {file.path: file.sha256 for file in run.submitted.event.files.files}
    return {name: workspace.blobs.get(files[name]).decode() for name in REQUIRED_FILES}


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


def _gates(run: RunState) -> dict[str, GateResult]:
    """Return the gates of the run's latest judgement, in their order."""
    judged = run.rejection if run.verified is None else run.verified
    return {} if judged is None else {gate.name: gate for gate in judged.event.gates}


def _compared_gates(before: Mapping[str, GateResult], after: Mapping[str, GateResult]) -> list[Data]:
    """Return the gates whose verdict or observed value differs; a side is None where the gate wasn't reached."""
    return [
        {"name": name, "a": _side(before.get(name)), "b": _side(after.get(name))}
        for name in dict.fromkeys((*before, *after))
        if _side(before.get(name)) != _side(after.get(name))
    ]


def _side(gate: GateResult | None) -> Data | None:
    return None if gate is None else gate.model_dump(mode="json", exclude={"name"})


def _times(run: RunState) -> Data | None:
    """Return the run's newest measurement, as `forge bench` answers it; None if nothing was measured."""
    measured = [one for one in (run.benchmark, run.failure) if one is not None and one.event.workloads]
    if not measured:
        return None
    answer = timed(max(measured, key=lambda one: one.seq).event)
    return {name: answer[name] for name in ("verdict", "reason", "baseline_used", "workloads")}


def _same_machine(workspace: Workspace, before: RunState, after: RunState) -> bool | None:
    """Return whether both were timed on machines of one kind; None if one wasn't timed."""
    kinds = []
    for run in (before, after):
        timing = run.benchmark or run.failure
        if timing is None or not timing.event.workloads:
            return None
        kinds.append(captured_environment(workspace, timing.event.env_sha256).perf_key)
    return kinds[0] == kinds[1]
