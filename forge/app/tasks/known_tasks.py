"""Finds and lists tasks. It imports nothing that judges, so that a list stays quick."""

from forge.app.stored.own_operation import make_task_known
from forge.app.workspace import Workspace
from forge.errors import UsageError
from forge.events import TaskCreated

STREAM = "task:"
"""Beginning of the name of a task's stream."""
NEWEST = "last"
"""Name for the newest task. It is no task's id, since an id begins with the name of a language."""


def find_task(workspace: Workspace, name: str) -> TaskCreated:
    """Return the task that `name` means: its id, a unique beginning, or `last` for the newest; raise UsageError."""
    newest = workspace.ledger.newest(TaskCreated.TYPE) if name == NEWEST else None
    name = name if newest is None else newest.event.stream().removeprefix(STREAM)
    fitting = workspace.ledger.streams(f"{STREAM}{name}") if name else []
    exact = [stream for stream in fitting if stream == f"{STREAM}{name}"]
    if len(exact or fitting) != 1:
        raise UsageError(
            f"{len(fitting)} tasks by the name {name!r}: expected a task id, its unique beginning, or `last`",
            hint="forge task list",
        )
    created = next(workspace.ledger.read(stream=(exact or fitting)[0], types=("TaskCreated",), limit=1))
    found = created.event
    assert isinstance(found, TaskCreated)  # nothing else begins a task's stream
    make_task_known(workspace.blobs, found.task)
    return found


def all_tasks(workspace: Workspace) -> list[dict[str, object]]:
    """Return every task, oldest first."""
    created = (recorded for recorded in workspace.ledger.read(types=("TaskCreated",)))
    return [
        {"task_id": one.event.task_id, "created_at": one.recorded_at, **one.event.task.model_dump(mode="json")}
        for one in created
        if isinstance(one.event, TaskCreated)
    ]
