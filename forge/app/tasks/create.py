"""Creates tasks, and opens runs for them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from forge.app.tasks.briefs import prepare
from forge.app.tasks.known_tasks import find_task
from forge.app.user.user_paths import read_named
from forge.app.workspace import Workspace, now
from forge.domain.candidate import FILE_LIMIT_BYTES
from forge.domain.digest import sha256
from forge.domain.evidence import Admission
from forge.domain.own_operation import is_own
from forge.domain.task import Task
from forge.events import RunStarted, TaskCreated
from forge.languages import find_language
from forge.ledger.runs.names import run_id as make_run_id
from forge.operations import find_operation
from forge.pipeline.contender_files import SubmittedContender
from forge.pipeline.create import TaskRequest, create

EMPTY = sha256(b"")
"""Digest that replaces those fields of a task in which two equal requests may differ."""


@dataclass(frozen=True)
class Opened:
    """A run that is ready for a candidate."""

    task_id: str
    run_id: str
    prompt_path: Path
    admission: Admission | None = None
    """Result of the new task's trial on known answers."""
    same_as: tuple[str, ...] = ()
    """Ids of earlier tasks that ask the same, on other held-out shapes; oldest first."""


def create_task(workspace: Workspace, request: TaskRequest) -> Opened:
    """Try a task on known answers, freeze it, then open its first run; raise WeakTask if it fails the trial.

    A light install has no tensors to try with. There the task is frozen untried, and the event says so.
    """
    from forge.lab.admission.mutants import admit
    from forge.lab.packages import lab_is_installed  # here: the lab takes longer to import than an answer

    tried = admit if lab_is_installed() else None
    task, outcome = create(request, policy=workspace.policy, rng=workspace.rng, admit=tried)
    for blob in outcome.blobs:
        workspace.blobs.put(blob)
    workspace.keep_policy()
    workspace.append(outcome.events, run_id=f"task:{task.task_id}", key=f"create:{task.task_id}")
    return open_first_run(workspace, task, admission_of(workspace, task.task_id))


def read_contenders(paths: Sequence[Path]) -> tuple[SubmittedContender, ...]:
    """Return the files' names and bytes; raise UsageError for one that isn't a file of Python text."""
    expected = "a Python file with a function 'contender'"
    return tuple(
        SubmittedContender(
            path.stem,
            read_named(path, what=f"the contender {str(path)!r}", expected=expected, limit_bytes=FILE_LIMIT_BYTES),
        )
        for path in paths
    )


def open_first_run(workspace: Workspace, task: Task, admission: Admission | None) -> Opened:
    """Open the first run of a new task, and name earlier tasks that ask the same."""
    opened = open_run(workspace, task.task_id, command="task create")
    return replace(opened, admission=admission, same_as=_tasks_like(workspace, task))


def _tasks_like(workspace: Workspace, task: Task) -> tuple[str, ...]:
    created = (recorded.event for recorded in workspace.ledger.read(types=("TaskCreated",)))
    others = (event.task for event in created if isinstance(event, TaskCreated) and event.task_id != task.task_id)
    return tuple(one.task_id for one in others if one.op == task.op and _asked(one) == _asked(task))


def _asked(task: Task) -> Task:
    """Return a task without what differs between two that ask the same.

    The name of an own operation holds its reference's syntax and its contract, so the bytes of the file may differ.
    """
    files = {"reference_sha256": EMPTY, "inputs_sha256": EMPTY} if is_own(task.op) else {}
    return task.model_copy(update={"held_out_sha256": EMPTY, **files})


def admission_of(workspace: Workspace, task_id: str) -> Admission | None:
    """Return the result of a recorded task's trial on known answers; None if it wasn't tried."""
    return find_task(workspace, task_id).admission


def open_run(
    workspace: Workspace,
    task_name: str,
    *,
    command: str = "run open",
    key: str | None = None,
    actor: str | None = None,
) -> Opened:
    """Open a run for a task: plan it and render its prompt.

    `key` is the command key of the run's start, and `actor` starts it. Default: the person at the command line.
    """
    started = start_of(workspace, task_name, command=command)
    run = started.run_id
    workspace.append((started,), run_id=run, key=key or f"start:{run}", actor=actor)
    prompt_path = prepare(workspace, workspace.find_run(run))
    return Opened(started.task_id, run, prompt_path)


def start_of(workspace: Workspace, task_name: str, *, command: str) -> RunStarted:
    """Return the beginning of a new run for a task, not recorded yet; raise UnknownName if it can't be run here."""
    created = find_task(workspace, task_name)
    task = created.task
    find_operation(task.op), find_language(task.language)  # another Forge may have recorded what this one hasn't
    run = make_run_id(now(), task.op, task.target.gpu, workspace.rng.randbytes(3).hex())
    return RunStarted(run_id=run, task_id=created.task_id, command=command, policy_sha256=workspace.keep_policy())
