"""Finds and lists tasks. It imports nothing that judges, so that a list stays quick."""

from forge.app.stored.own_operation import make_task_known
from forge.app.workspace import Workspace
from forge.errors import UnknownName, UsageError
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
        raise _unknown(workspace, name, [one.removeprefix(STREAM) for one in fitting])
    created = next(workspace.ledger.read(stream=(exact or fitting)[0], types=("TaskCreated",), limit=1))
    found = created.event
    assert isinstance(found, TaskCreated)  # nothing else begins a task's stream
    make_task_known(workspace.blobs, found.task)
    return found


def _unknown(workspace: Workspace, name: str, fitting: list[str]) -> UsageError:
    """Return the error for a name that no task has, or that several have."""
    if fitting:
        shown = ", ".join(fitting[: UnknownName.NAMED])
        return UsageError(
            f"{len(fitting)} tasks start with {name!r} ({shown}): expected a task id or a longer beginning of one",
            hint="forge task list",
        )
    known = [one.removeprefix(STREAM) for one in workspace.ledger.streams(STREAM)]
    if not known:
        return UsageError(f"unknown task {name!r}: there is no task yet", hint="forge task create --help")
    return UnknownName("task", name, [*known, NEWEST], listed_by="forge task list")


def all_tasks(workspace: Workspace) -> list[dict[str, object]]:
    """Return every task of the ledger as a document, oldest first."""
    created = (recorded for recorded in workspace.ledger.read(types=("TaskCreated",)))
    return [
        {"task_id": one.event.task_id, "created_at": one.recorded_at, **one.event.task.model_dump(mode="json")}
        for one in created
        if isinstance(one.event, TaskCreated)
    ]
