"""new: a candidate's five files as a starting point."""

from pathlib import Path
from typing import Annotated

import typer

from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json
from forge.cli.output import emit_answer
from forge.cli.suggest import suggest


def new(
    task: Annotated[str, typer.Argument(help="A task's id, a unique beginning of it, or `last`.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make; it must be new or empty.")],
    solution: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="A kernel.py with a class ModelNew to start from.", show_default=False
        ),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write a candidate's five files, filled so that they pass as they are; then make the kernel fast.

    Example: forge new cpp_fused_add_rmsnorm_cpu my-kernel
    """
    from forge.app.tasks.starter import is_newest_runs, write_starter

    with open_workspace(home) as workspace:
        made = write_starter(workspace, task, directory, solution=solution)
        is_newest = is_newest_runs(workspace, str(made["task_id"]))
    emit_answer(made, "Starting point", ("task", "folder"), [(made["task_id"], made["folder"])], as_json=as_json)
    suggest(
        "next", f"forge submit last {directory}" if is_newest else f"forge pipeline {made['task_id']} {directory}"
    )
