"""Tasks of a module's parts, and the kernels that were written for them."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from forge.app.experiment import incumbent_kernel
from forge.app.references import DeclaredTexts, freeze_reference, infer_reference
from forge.app.tasks import find_task
from forge.app.workspace import Workspace
from forge.authors.attempts import Attempt, fastest
from forge.domain.authoring import Draft, Judged, Submit
from forge.domain.candidate import Metadata
from forge.errors import ReferenceRefused, UsageError, WeakTask
from forge.lab.job import Progress
from forge.lab.parts.compose import PartKernel
from forge.pipeline.create import TaskRequest
from forge.pipeline.sessions.learned import ENTRY
from forge.pipeline.sessions.loop import STEP
from forge.projections.sessions import SessionState

LEAST_SHARE = 0.01
"""Share of a module's arithmetic and bytes below which a part stays on its reference."""


def task_of_part(
    workspace: Workspace, reference: str, request: TaskRequest, *, name: str, progress: Progress
) -> str | None:
    """Open a task for a part's reference; None if it can't be judged, which `progress` is told."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.py"
        path.write_text(reference, encoding="utf-8")
        try:
            found = infer_reference(
                workspace, path, replace(request, op=""), declared=DeclaredTexts(name=name), progress=lambda _: None
            )
            return freeze_reference(workspace, found).task_id
        except (ReferenceRefused, WeakTask, UsageError) as error:
            progress(f"part {name} stays on its reference: {error.message}")
            return None


def known_kernel(workspace: Workspace, task_id: str) -> PartKernel | None:
    """Return the promoted kernel for the same part, if the registry has one."""
    kernel = incumbent_kernel(workspace, find_task(workspace, task_id).task.family)
    if kernel is None:
        return None
    files = {one.path: workspace.blobs.get(one.sha256).decode() for one in kernel.files}
    return _kernel(files)


def best_kernel(workspace: Workspace, state: SessionState) -> PartKernel | None:
    """Return the fastest kernel of a session that passed every gate."""
    found = fastest(list(attempts_of(workspace, state)), 1)
    return _kernel(found[0].draft.files) if found else None


def attempts_of(workspace: Workspace, state: SessionState) -> Iterator[Attempt]:
    """Yield each candidate of a session with what was found about it."""
    drafts: dict[str, Draft] = {}
    for one in state.rounds:
        step = STEP.validate_json(workspace.blobs.get(one.step.step_sha256))
        if isinstance(step, Submit):
            drafts |= {draft.sha256: draft for draft in step.drafts}
    for answered in state.answers():
        entry = ENTRY.validate_json(workspace.blobs.get(answered.entry_sha256))
        if isinstance(entry, Judged):
            yield Attempt(drafts[entry.draft], entry)


def _kernel(files: dict[str, str]) -> PartKernel:
    metadata = Metadata.model_validate_json(files["metadata.json"])
    return PartKernel(
        text=files["kernel.py"],
        entry_point=metadata.entry_point or metadata.op,
        cpp_source=metadata.cpp.source if metadata.cpp else None,
    )
