"""Solves a module: has kernels written for its parts, and the composed whole judged like any other candidate."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from forge.app.references import freeze_reference, infer_reference, read_source
from forge.app.runs import GATE
from forge.app.solve.children import LEAST_SHARE, best_kernel, known_kernel, task_of_part
from forge.app.solve.composing import judge_whole
from forge.app.solve.taking_apart import TakenApart, take_apart
from forge.app.workspace import Workspace
from forge.domain.authoring import Judged
from forge.domain.digest import Digest
from forge.domain.verdict import Accepted
from forge.errors import UsageError
from forge.events.module import ModuleComposed, ModulePart, ModuleRouted
from forge.executor.local import isolation
from forge.lab.job import Progress
from forge.lab.parts.compose import PartKernel
from forge.pipeline.create import TaskRequest
from forge.projections.sessions import SessionState

Work = Callable[[str, int], SessionState]
"""Function from a task and a number of equal shares to the session in which the author works with one share."""


@dataclass
class Solved:
    """What came of a module."""

    task_id: str
    routed: ModuleRouted
    sessions: list[str] = field(default_factory=list)
    composed: ModuleComposed | None = None
    judged: Judged | None = None
    kernels: list[str] = field(default_factory=list)
    """Ids of promoted kernels for the whole module."""


def solve(workspace: Workspace, path: Path, request: TaskRequest, work: Work, *, progress: Progress) -> Solved:
    """Solve the module in a file. A way that gives no promoted kernel is left once for the other one.

    Raises UsageError or ReferenceRefused for a file that is no module.
    """
    source = read_source(path)
    task_id = freeze_reference(workspace, infer_reference(workspace, path, request, progress=progress)).task_id
    apart = take_apart(source, task_id=task_id, policy=workspace.policy, isolation=isolation())
    _record(workspace, apart.routed, apart)
    progress(f"route {apart.routed.route}: {apart.routed.detail}")
    found = Solved(task_id, apart.routed)
    if apart.routed.route == "extract":
        _by_parts(workspace, source, request, apart, found, work, progress)
    if not found.kernels:
        if apart.routed.route == "extract":
            detail = "no composed candidate was promoted, so the whole module is tried"
            again = ModuleRouted(task_id=task_id, route="direct", reason="fallback", detail=detail, parts=())
            workspace.append((again,), run_id=f"module:{task_id}", key=f"module:{task_id}:fallback", actor=GATE)
            progress(f"route direct: {detail}")
        state = work(task_id, _shares(apart))
        found.sessions.append(state.session_id)
        found.kernels += [one.kernel_id for one in state.answers() if one.kernel_id is not None]
    return found


def _shares(apart: TakenApart) -> int:
    """Return the number of equal shares of the budget: one for each part worth a kernel, one for the whole."""
    return 1 + sum(_is_worth_it(one) for one in apart.routed.parts)


def _is_worth_it(part: ModulePart) -> bool:
    return max(part.flops_share, part.bytes_share) >= LEAST_SHARE


def _record(workspace: Workspace, routed: ModuleRouted, apart: TakenApart) -> None:
    for text in (apart.references or {}).values():
        workspace.blobs.put(text.encode())
    workspace.append((routed,), run_id=f"module:{routed.task_id}", key=f"module:{routed.task_id}:route", actor=GATE)


def _by_parts(
    workspace: Workspace,
    source: bytes,
    request: TaskRequest,
    apart: TakenApart,
    found: Solved,
    work: Work,
    progress: Progress,
) -> None:
    """Have kernels written for the parts, put them together, and have the result judged."""
    kernels: dict[Digest, PartKernel] = {}
    assert apart.references is not None
    for place, part in enumerate(apart.routed.parts):
        if not _is_worth_it(part):
            progress(f"part_{place} stays on its reference: under {LEAST_SHARE:.0%} of the module's work")
            continue
        reference = apart.references[part.signature]
        task = task_of_part(workspace, reference, request, name=f"part_{place}", progress=progress)
        if task is None:
            continue
        kernel = known_kernel(workspace, task)
        if kernel is None:
            state = work(task, _shares(apart))
            found.sessions.append(state.session_id)
            kernel = best_kernel(workspace, state)
        if kernel is None:
            progress(f"part_{place} stays on its reference: no kernel for it passed every gate")
        else:
            kernels[part.signature] = kernel
    whole = judge_whole(workspace, source, apart, kernels, progress=progress) if kernels else None
    if whole is not None:
        found.composed, found.judged = whole.composed, whole.judged
        if isinstance(whole.judged.verdict, Accepted) and whole.judged.kernel_id is not None:
            found.kernels.append(whole.judged.kernel_id)


def require_module(path: Path) -> None:
    """Raise UsageError unless a file names a class Model, so that nothing is recorded for another file."""
    if b"class Model" not in read_source(path):
        raise UsageError(f"{str(path)!r} has no class Model: expected a module in KernelBench's form")
