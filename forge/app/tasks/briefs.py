"""Plans runs and renders their briefs: what the author is shown, from what is known when the run is opened.

Nothing here needs the lab: planning uses no tensors and no guest.
"""

from pathlib import Path

import orjson

from forge.app.lessons.lesson import accepted_lessons
from forge.app.runs.states import require_state, task_of
from forge.app.tasks.brief_path import PROMPT_FILE, brief_copy, brief_path
from forge.app.workspace import Workspace
from forge.events import PlanAccepted
from forge.ledger.durable import make_folder, write_durably
from forge.ledger.runs.directory import OPEN_FILE
from forge.pipeline import plan, prompt
from forge.pipeline.budget import DEFAULT_TOKENS
from forge.pipeline.outcome import Outcome
from forge.pipeline.skills import Skill
from forge.platforms.host_facts import host_facts
from forge.projections.experiments import best_kernel, earlier_experiments
from forge.projections.run_lookup import experiments
from forge.projections.runs import RunState


def prepare(workspace: Workspace, run: RunState) -> Path:
    """Plan a run and render its prompt unless that is done; return the path of the prompt's copy."""
    if run.plan is not None and run.prompt is not None:
        return brief_path(workspace.runs_root, run.run_id)
    require_state(run, "planned", phase="plan")
    if run.plan is None:
        accepted, skills = _plan(workspace, run)
    else:
        accepted = run.plan.event
        skills = plan.planned(accepted, home=workspace.home, lessons=accepted_lessons(workspace))
    return _render(workspace, run, accepted, skills)


def _plan(workspace: Workspace, run: RunState) -> tuple[PlanAccepted, tuple[Skill, ...]]:
    """Choose skills by what is known when the run is planned."""
    task = task_of(run)
    with workspace.publication.tables() as history:
        earlier, best = earlier_experiments(history, task), best_kernel(history, task)
    skills, planned = plan.plan(
        task,
        run_id=run.run_id,
        earlier_experiments=experiments(workspace.ledger, run.task_id) - 1,
        earlier=earlier,
        best=best,
        lessons=accepted_lessons(workspace),
        home=workspace.home,
    )
    content = orjson.dumps(task.model_dump(mode="json"), option=orjson.OPT_INDENT_2)
    workspace.directory(run.run_id).write("task.json", content)
    workspace.record(planned, run_id=run.run_id, key=f"plan:{run.run_id}")
    return plan.accepted(planned), skills


def _render(workspace: Workspace, run: RunState, accepted: PlanAccepted, skills: tuple[Skill, ...]) -> Path:
    """Render the brief of a plan, and store it."""
    rendered = _rendered(workspace, run, accepted, skills, budget_tokens=DEFAULT_TOKENS)
    workspace.record(rendered, run_id=run.run_id, key=f"prompt:{run.run_id}")
    copy = brief_copy(workspace.runs_root, run.run_id)
    make_folder(copy.parent)
    write_durably(copy, rendered.files[PROMPT_FILE], mode=OPEN_FILE)
    return copy


def _rendered(
    workspace: Workspace, run: RunState, accepted: PlanAccepted, skills: tuple[Skill, ...], *, budget_tokens: int
) -> Outcome:
    """Return the brief of a plan for this machine; nothing is recorded."""
    task = task_of(run)
    return prompt.render(
        task,
        run_id=run.run_id,
        skills=skills,
        policy=workspace.policy,
        triage=accepted.triage,
        budget_tokens=budget_tokens,
        machine=host_facts() if task.target.platform == "cpu" else (),
    )


def brief_within(workspace: Workspace, run: RunState, *, budget_tokens: int) -> str:
    """Return a run's brief for another budget. Nothing is recorded, and the stored brief stays as it is."""
    prepare(workspace, run)
    run = workspace.find_run(run.run_id)
    assert run.plan is not None
    accepted = run.plan.event
    skills = plan.planned(accepted, home=workspace.home, lessons=accepted_lessons(workspace))
    rendered = _rendered(workspace, run, accepted, skills, budget_tokens=budget_tokens)
    return rendered.files[PROMPT_FILE].decode()


def brief(workspace: Workspace, run: RunState) -> str:
    """Return the prompt as it was rendered, even if its file was changed or removed."""
    prepare(workspace, run)
    rendered = workspace.find_run(run.run_id).prompt
    assert rendered is not None
    return workspace.blobs.get(rendered.event.rendered_sha256).decode()
