"""Profiles a run's verified candidate, and records the result."""

from dataclasses import replace
from typing import get_args

import orjson

from forge.app.machine.chosen_executor import executor_of
from forge.app.phases.phase_inputs import artifact_of, evidence_of, loadable_artifact
from forge.app.runs.states import GATE, what_comes_next
from forge.app.workspace import Workspace
from forge.errors import PhaseOutOfOrder, UnknownName
from forge.executor import ProfilerTool
from forge.lab.job import Progress
from forge.lab.packages import require_lab
from forge.pipeline.job import job_of
from forge.pipeline.profile import profile
from forge.projections.runs import RunState

TOOLS: dict[str, ProfilerTool] = {name: name for name in get_args(ProfilerTool)}


def profile_candidate(
    workspace: Workspace, run: RunState, *, untrusted_tool: str | None, progress: Progress
) -> dict[str, object]:
    """Record ProfileCaptured and return the report. Without a tool: counters if available, otherwise operators.

    Raises UnknownName for an unknown tool, and PhaseOutOfOrder for a candidate that isn't verified.
    """
    if untrusted_tool is not None and untrusted_tool not in TOOLS:
        raise UnknownName("profiler", untrusted_tool, list(TOOLS))
    if run.verified is None:
        raise PhaseOutOfOrder(
            f"run {run.run_id!r} is {run.state}: expected a run whose candidate is verified",
            hint=what_comes_next(run),
        )
    require_lab()
    executor = executor_of(workspace)
    evidence = evidence_of(workspace, run, executor.site(workspace.policy), attempt=1)
    tool = TOOLS[untrusted_tool] if untrusted_tool is not None else executor.profiler(job_of(evidence))
    if tool == "cuobjdump":  # it only reads the built files
        artifact = artifact_of(workspace, run.verified.event.artifact_sha256)
    else:
        artifact = loadable_artifact(workspace, run.run_id, evidence, run.verified.event)
    outcome = profile(evidence, executor, artifact, tool=tool, progress=progress)
    (event,) = outcome.events
    (raw,) = outcome.blobs
    if run.sealed:
        outcome = replace(outcome, files={})
    place = workspace.ledger.stream_version(event.stream())
    workspace.record(outcome, run_id=run.run_id, key=f"profile:{run.run_id}:{tool}:{place}", actor=GATE)
    document: dict[str, object] = orjson.loads(raw)
    return {
        "run_id": run.run_id,
        "tool": tool,
        **event.model_dump(mode="json", include={"tool_version", "raw_sha256"}),
    } | {"report": document}
