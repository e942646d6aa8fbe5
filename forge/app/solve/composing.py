"""Puts the kernels of a module's parts together, and has the whole judged like any other candidate."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from forge.app.runs.states import GATE
from forge.app.sessions.judging import judge
from forge.app.solve.taking_apart import TakenApart
from forge.app.tasks.create import open_run
from forge.app.tasks.known_tasks import find_task
from forge.app.workspace import Workspace
from forge.domain.authoring import Draft, Judged
from forge.domain.candidate import CppBuild
from forge.domain.digest import Digest
from forge.domain.task import Task
from forge.events.module import ModuleComposed
from forge.lab.job import Progress
from forge.lab.parts.compose import CannotCompose, PartKernel, composed_kernel
from forge.operations import find_operation
from forge.pipeline.starter import starter_files

COMPOSER = "agent:composer"
"""Author of a composed candidate. It gets no more trust than any other program that writes candidates."""
Kernels = Mapping[Digest, PartKernel]
"""Signature of a part -> its kernel."""


@dataclass(frozen=True)
class JudgedWhole:
    """A composed candidate, and what was found about it."""

    composed: ModuleComposed
    judged: Judged


def judge_whole(
    workspace: Workspace, source: bytes, apart: TakenApart, kernels: Kernels, *, progress: Progress
) -> JudgedWhole | None:
    """Judge the module with these kernels; None if they can't stand in one file, which `progress` is told."""
    task_id = apart.routed.task_id
    try:
        draft = _draft(source, apart, kernels, find_task(workspace, task_id).task)
    except CannotCompose as error:
        progress(f"the parts' kernels can't be put together: {error}")
        return None
    parts = apart.routed.parts
    replaced = [one for one in parts if one.signature in kernels]
    run_id = open_run(workspace, task_id, command="agent solve").run_id
    composed = ModuleComposed(
        task_id=task_id,
        run_id=run_id,
        replaced=tuple(one.signature for one in replaced),
        left=tuple(one.signature for one in parts if one.signature not in kernels),
        flops_share=min(1.0, sum(one.flops_share for one in replaced)),
        bytes_share=min(1.0, sum(one.bytes_share for one in replaced)),
    )
    workspace.append((composed,), run_id=run_id, key=f"module:{task_id}:composed:{run_id}", actor=GATE)
    return JudgedWhole(composed, judge(workspace, run_id, draft, author=COMPOSER, progress=progress).entry)


def _draft(source: bytes, apart: TakenApart, kernels: Kernels, task: Task) -> Draft:
    """Return the composed candidate; raise CannotCompose."""
    assert apart.graph is not None
    placed = {place: kernels[one] for place, one in enumerate(apart.signatures) if one in kernels}
    own = find_operation(task.op).own
    form = own.contract.returned if own is not None else ""
    text, has_cpp = composed_kernel(source.decode(), apart.graph, apart.parts, placed, returned=form)
    files = {name: content.decode() for name, content in starter_files(task, solution=text.encode()).items()}
    if has_cpp:
        described = json.loads(files["metadata.json"]) | {"cpp": CppBuild().model_dump(mode="json")}
        files["metadata.json"] = json.dumps(described, indent=2) + "\n"
    parts = apart.routed.parts
    known = sum(one.signature in kernels for one in parts)
    return Draft(files=files, hypothesis=f"kernels for {known} of {len(parts)} different parts")
