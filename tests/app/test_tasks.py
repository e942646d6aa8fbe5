"""Tasks are found by their names; one that a newer Forge recorded can be read here, and isn't begun."""

from pathlib import Path

import pytest

from forge.app.tasks.create import open_run
from forge.app.tasks.known_tasks import find_task
from forge.app.workspace import Workspace
from forge.errors import UnknownName, UsageError
from tests.cli.asking import files


def test_no_run_begins_for_a_language_that_is_not_here(home: Path) -> None:
    with Workspace.open(home) as workspace:
        created = find_task(workspace, workspace.find_run("last").task_id)
        task = created.task.model_copy(update={"language": "mojo"})
        name = created.task_id.replace("cpp_", "mojo_")
        newer = created.model_copy(update={"task": task, "task_id": name})
        workspace.append((newer,), run_id=name, key=f"create:{name}")
        assert find_task(workspace, name).task.language == "mojo"
        before, events = files(home), workspace.ledger.head.seq
        with pytest.raises(UnknownName, match="unknown language 'mojo'"):
            open_run(workspace, name)
        assert (files(home), workspace.ledger.head.seq) == (before, events)


def test_last_is_the_newest_task(home: Path) -> None:
    with Workspace.open(home) as workspace:
        first = find_task(workspace, "last")
        assert first.task_id == workspace.find_run("last").task_id
        name = first.task_id.replace("cpp_", "torch_")
        workspace.append((first.model_copy(update={"task_id": name}),), run_id=name, key=f"create:{name}")
        assert find_task(workspace, "last").task_id == name


def test_without_a_task_last_means_none(empty: Path) -> None:
    with (
        Workspace.open(empty) as workspace,
        pytest.raises(UsageError, match="unknown task 'last': there is no task yet"),
    ):
        find_task(workspace, "last")
