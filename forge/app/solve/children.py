"""Tasks of a module's parts, the sessions in which an author works on them, and the kernels that come of it."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from forge.app.incumbent import incumbent_kernel
from forge.app.solve.taking_apart import TakenApart
from forge.app.tasks.known_tasks import find_task
from forge.app.tasks.references import DeclaredTexts, freeze_reference, infer_reference
from forge.app.workspace import Workspace
from forge.authors.attempts import Attempt, fastest
from forge.domain.authoring import Draft, Judged, Submit
from forge.domain.candidate import Metadata
from forge.domain.digest import Digest
from forge.errors import ReferenceRefused, UsageError, WeakTask
from forge.events.module import ModulePart
from forge.lab.job import Progress
from forge.lab.parts.compose import PartKernel
from forge.pipeline.create import TaskRequest
from forge.pipeline.sessions.learned import ENTRY
from forge.pipeline.sessions.loop import STEP
from forge.projections.sessions import SessionState
from forge.sandbox.calling_off import call_off, resume

LEAST_SHARE = 0.01
"""Share of a module's arithmetic and bytes below which a part stays on its reference. Chosen; a smaller share costs
whole sessions for parts that hardly count."""
MOST_BESIDE = 4
"""Number of parts that are worked on at the same time. Chosen; their candidates take turns on the device, so more
would only wait."""
Work = Callable[[str, int], SessionState]
"""Function from a task and a number of equal shares to the session in which the author works with one share.

Several threads may call it at once."""


@dataclass(frozen=True)
class _Wanted:
    """A part for which a kernel is to be written."""

    name: str
    signature: Digest
    task_id: str


def is_worth_it(part: ModulePart) -> bool:
    """Return whether a part has enough of the module's work for a kernel of its own."""
    return max(part.flops_share, part.bytes_share) >= LEAST_SHARE


def kernels_of_parts(
    workspace: Workspace, apart: TakenApart, request: TaskRequest, work: Work, *, shares: int, progress: Progress
) -> tuple[dict[Digest, PartKernel], list[str]]:
    """Return kernels of parts by their signatures, and the ids of the sessions that wrote them.

    Parts that the registry knows need no session. A part without a kernel that passed every gate has none.
    """
    kernels: dict[Digest, PartKernel] = {}
    wanted: list[_Wanted] = []
    assert apart.references is not None
    for place, part in enumerate(apart.routed.parts):
        name = f"part_{place}"
        if not is_worth_it(part):
            progress(f"{name} stays on its reference: under {LEAST_SHARE:.0%} of the module's work")
            continue
        task = task_of_part(workspace, apart.references[part.signature], request, name=name, progress=progress)
        if task is None:
            continue
        kernel = known_kernel(workspace, task)
        if kernel is None:
            wanted.append(_Wanted(name, part.signature, task))
        else:
            kernels[part.signature] = kernel
    sessions: list[str] = []
    for one, state in zip(wanted, _worked(wanted, work, shares), strict=True):
        sessions.append(state.session_id)
        kernel = best_kernel(workspace, state)
        if kernel is None:
            progress(f"{one.name} stays on its reference: no kernel for it passed every gate")
        else:
            kernels[one.signature] = kernel
    return kernels, sessions


def _worked(wanted: Sequence[_Wanted], work: Work, shares: int) -> list[SessionState]:
    """Let the author work on the parts side by side; an interruption ends their guests too."""
    try:
        with ThreadPoolExecutor(MOST_BESIDE) as pool:
            begun = [pool.submit(work, one.task_id, shares) for one in wanted]
            try:
                return [one.result() for one in begun]
            except BaseException:
                for one in begun:
                    one.cancel()
                call_off()
                raise
    finally:
        resume()


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
