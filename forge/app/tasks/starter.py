"""Writes a starting point for a task into a new folder."""

from collections.abc import Mapping
from pathlib import Path

from forge.app.tasks.known_tasks import find_task
from forge.app.tasks.references import read_source
from forge.app.user.user_paths import resolved
from forge.app.workspace import Workspace
from forge.errors import RunNotFound, UsageError
from forge.lab.packages import require_lab
from forge.ledger.durable import PUBLIC, write_durably
from forge.pipeline.starter import starter_files


def write_starter(workspace: Workspace, task_name: str, folder: Path, *, solution: Path | None) -> dict[str, object]:
    """Write five filled files into `folder`, which is made; raise UsageError if it has files already."""
    require_lab()
    task = find_task(workspace, task_name)
    source = read_source(solution, what="solution") if solution is not None else None
    files = starter_files(task.task, solution=source)
    path = resolved(folder)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{str(folder)!r} is a file: expected a new or an empty folder")
    if path.exists() and any(path.iterdir()):
        raise UsageError(f"{str(folder)!r} has content already: expected a new or an empty folder")
    _write(path, files)
    return {"task_id": task.task_id, "folder": str(folder), "files": list(files)}


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files into the folder, which is made, or none of them; raise StorageFailed if the disk refuses."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    whole = False
    try:
        for name, content in files.items():
            write_durably(folder / name, content, mode=PUBLIC)
        whole = True
    finally:
        if not whole:
            for name in files:
                (folder / name).unlink(missing_ok=True)
            if is_new:
                folder.rmdir()


def is_newest_runs(workspace: Workspace, task_id: str) -> bool:
    """Return whether the newest run, which `last` means, is of this task."""
    try:
        return workspace.find_run("last").task_id == task_id
    except RunNotFound:
        return False
