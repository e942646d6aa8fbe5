"""Tasks and the runs opened for them."""

from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from forge.app.runs import require_state, task_of
from forge.app.workspace import Workspace, now
from forge.domain.evidence import Admission
from forge.errors import UsageError
from forge.events import RunStarted, TaskCreated
from forge.executor.local import lab_is_installed
from forge.lab.admission import admit
from forge.ledger.runs import RunDirectory
from forge.ledger.runs import run_id as make_run_id
from forge.pipeline import plan, prompt
from forge.pipeline.create import Request, create
from forge.projections.experiments import earlier_experiments
from forge.projections.run_lookup import experiments
from forge.projections.runs import RunState

PROMPT_FILE = "agent_prompt.md"


@dataclass(frozen=True)
class Opened:
    """A run that is ready for a candidate."""

    task_id: str
    run_id: str
    prompt_path: Path
    admission: Admission | None = None
    """How a task that was just made did against known answers."""


def create_task(workspace: Workspace, request: Request) -> Opened:
    """Try a task on known answers, freeze it, then open its first run; raise WeakTask where it can't tell them apart.

    A light install has no tensors to try with: there the task is frozen untried, and says so.
    """
    tried = admit if lab_is_installed() else None
    task, outcome = create(request, policy=workspace.policy, rng=workspace.rng, admit=tried)
    for blob in outcome.blobs:
        workspace.blobs.put(blob)
    workspace.keep_policy()
    workspace.append(outcome.events, run_id=f"task:{task.task_id}", key=f"create:{task.task_id}")
    return replace(
        open_run(workspace, task.task_id, command="task create"), admission=admission_of(workspace, task.task_id)
    )


def admission_of(workspace: Workspace, task_id: str) -> Admission | None:
    """How a recorded task did against known answers, if it was tried."""
    return find_task(workspace, task_id).admission


def find_task(workspace: Workspace, name: str) -> TaskCreated:
    """The task that `name` means: its id or a unique beginning; raise UsageError."""
    created = [recorded.event for recorded in workspace.ledger.read(types=("TaskCreated",))]
    fitting = [event for event in created if isinstance(event, TaskCreated) and event.task_id.startswith(name)]
    exact = [event for event in fitting if event.task_id == name]
    if len(exact or fitting) != 1 or not name:
        raise UsageError(
            f"{len(fitting)} tasks by the name {name!r}: expected a task id or its unique beginning",
            hint="forge task list",
        )
    return (exact or fitting)[0]


def open_run(workspace: Workspace, task_name: str, *, command: str = "run open") -> Opened:
    """Open a run for a task: plan it and render its prompt."""
    created = find_task(workspace, task_name)
    task = created.task
    run = make_run_id(now(), task.op, task.target.gpu, workspace.rng.randbytes(3).hex())
    started = RunStarted(run_id=run, task_id=created.task_id, command=command, policy_sha256=workspace.keep_policy())
    workspace.append((started,), run_id=run, key=f"start:{run}")
    prompt_path = prepare(workspace, workspace.find_run(run))
    return Opened(created.task_id, run, prompt_path)


def prepare(workspace: Workspace, run: RunState) -> Path:
    """Plan a run and render its prompt, as far as that hasn't happened; the prompt's path."""
    if run.plan is not None and run.prompt is not None:
        return RunDirectory(workspace.runs_root, run.run_id).path / PROMPT_FILE
    require_state(run, "planned", phase="plan")
    task = task_of(run)
    directory = workspace.directory(run.run_id)
    if run.plan is not None:
        accepted = run.plan.event
        skills = plan.planned(accepted, home=workspace.home)
    else:
        skills, planned = plan.plan(
            task,
            run_id=run.run_id,
            earlier_experiments=experiments(workspace.ledger, run.task_id) - 1,
            earlier=earlier_experiments(workspace.ledger, task.op),
            home=workspace.home,
        )
        accepted = plan.accepted(planned)
        directory.write("task.json", orjson.dumps(task.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
        workspace.record(planned, run_id=run.run_id, key=f"plan:{run.run_id}")
    if run.prompt is None:
        rendered = prompt.render(
            task, run_id=run.run_id, skills=skills, policy=workspace.policy, triage=accepted.triage
        )
        workspace.record(rendered, run_id=run.run_id, key=f"prompt:{run.run_id}")
    return directory.path / PROMPT_FILE


def brief(workspace: Workspace, run: RunState) -> str:
    """The prompt as it was rendered, whatever became of its file."""
    prepare(workspace, run)
    rendered = workspace.find_run(run.run_id).prompt
    assert rendered is not None
    return workspace.blobs.get(rendered.event.rendered_sha256).decode()
