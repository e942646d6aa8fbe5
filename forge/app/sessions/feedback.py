"""Says what the author of a judged draft may know besides the verdict. Nothing of it names a held-out shape."""

from collections.abc import Mapping
from typing import Any

import orjson

from forge.app.runs.author_log import author_log
from forge.app.workspace import Workspace
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.evidence import WorkloadTiming
from forge.domain.feedback import Feedback, ShownCounterexample, ShownTiming
from forge.events import CandidateRejected
from forge.projections.runs import RunState

MOST_LOG_LINES = 20
"""Number of lines of a build's log that an author is shown, from its end. Chosen; a model pays for each line."""
LONGEST_LINE, LONGEST_SNIPPET = 400, 4000
"""Lengths in characters above which a line is cut, and a snippet is left out."""


def feedback_of(
    workspace: Workspace, run: RunState, timed: WorkloadTiming | None, *, names_held_out: bool
) -> Feedback:
    """Return the feedback on a run's candidate.

    `names_held_out` says that the refusal's own words name a shape that was drawn for this candidate alone. Then
    neither the counterexample nor the log is told.
    """
    rejected = run.rejection.event if run.rejection else None
    judged = (
        rejected or (run.failure.event if run.failure else None) or (run.verified.event if run.verified else None)
    )
    return Feedback(
        gate=rejected.gates[-1].name if rejected is not None and rejected.gates else None,
        simulated=bool(getattr(judged, "simulated", False)),
        counterexample=None if names_held_out else _counterexample(workspace, rejected),
        build_log=() if names_held_out else _log_of(workspace, run),
        timing=None if timed is None else _timing(timed),
    )


def _counterexample(workspace: Workspace, rejected: CandidateRejected | None) -> ShownCounterexample | None:
    if rejected is None or rejected.counterexample_sha256 is None:
        return None
    return shown_counterexample(orjson.loads(workspace.blobs.get(rejected.counterexample_sha256)))


def shown_counterexample(found: Mapping[str, Any]) -> ShownCounterexample:
    """Return a counterexample's document as its author may see it."""
    snippet = found["snippet"]
    return ShownCounterexample(
        shape=found["shape"],
        index=tuple(found["index"]),
        wrong_elements=None if found.get("wrong_elements") is None else _cut(found["wrong_elements"]),
        snippet=snippet if len(snippet) <= LONGEST_SNIPPET else None,
        **{name: _cut(found[name]) for name in ("inputs", "output", "expected", "got", "allowed_error")},
    )


def _log_of(workspace: Workspace, run: RunState) -> tuple[str, ...]:
    """Return the last lines that the candidate's compiler or its tests said, if it was refused."""
    if run.rejection is None:
        return ()
    said = author_log(workspace, run.rejection.event)
    return log_lines(said["log"], said["mend"])


def log_lines(log: object, mend: object) -> tuple[str, ...]:
    """Return the lines of a log's excerpt, led by the place in the sources that it names."""
    lines: list[str] = []
    for found in (log, mend):
        if isinstance(found, Mapping) and found.get("line") is not None and found.get("file", "kernel.py"):
            place = f"{found.get('file', REQUIRED_FILES[0])}, line {found['line']}"
            source = found.get("source")
            lines.append(place if source is None else f"{place}: {str(source).strip()}")
    before = mend.get("comes_from", ()) if isinstance(mend, Mapping) else ()
    lines += [f"it comes from line {one['line']}: {one['source']}" for one in before]
    if isinstance(log, Mapping):
        lines += [str(log["untrusted_error"])] if log["untrusted_error"] and not log["untrusted_lines"] else []
        untrusted_lines = log["untrusted_lines"]
        assert isinstance(untrusted_lines, list)
        lines += [str(line) for line in untrusted_lines[-MOST_LOG_LINES:]]
    return tuple(map(_cut, lines))


def _timing(timed: WorkloadTiming) -> ShownTiming | None:
    if not timed.speedups:
        return None
    beaten = min(timed.speedups, key=lambda one: one.baseline_median_ns)
    return ShownTiming(
        baseline=str(beaten.baseline),
        ratio=beaten.interval,
        median_us=timed.candidate.median_ns / 1000,
        floor_share=timed.floor_fraction,
    )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 3]}..."
