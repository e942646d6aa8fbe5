"""agent solve: a whole module, by kernels for its parts or as one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forge.cli.agent_options import SharedWorkOptions
from forge.cli.opening import open_workspace
from forge.cli.option_groups import with_groups
from forge.cli.options import Home, Json
from forge.cli.output import SIMULATED, emit_json, emit_table
from forge.cli.progress import reporting
from forge.cli.suggest import suggest

if TYPE_CHECKING:
    from forge.app.solve.solving import Solved

ModuleFile = Annotated[Path, typer.Argument(metavar="FILE", help="A module in KernelBench's form: a class Model.")]


@with_groups
def solve(file: ModuleFile, author: SharedWorkOptions, home: Home = None, as_json: Json = False) -> None:
    """Solve a whole module: take it apart, have kernels written, put them together, and judge the whole.

    The budget is shared equally by the sessions of its parts and of the whole.
    Exit status: 0 if a kernel for the whole module was promoted, 1 if none was.

    Example: forge agent solve model.py --author model --model openai:gpt-5 --dollars 5 --tokens 2000000
    """
    from forge.app.solve.authoring import SharedWork
    from forge.app.solve.solving import require_module
    from forge.app.solve.solving import solve as solve_module

    require_module(file)
    choice, request = author.choice(), author.request()
    with open_workspace(home) as workspace, reporting("solve") as progress:
        work = SharedWork(
            workspace=workspace, choice=choice, request=request, key_file=author.key_file, progress=progress
        )
        found = solve_module(workspace, file, author.terms(), work, solver=work.identity, progress=progress)
    _show(found, as_json=as_json)
    if not found.kernels:
        suggest("try", f"forge agent cost {found.sessions[-1] if found.sessions else ''}".rstrip())
        raise typer.Exit(1)


def _show(found: "Solved", *, as_json: bool) -> None:
    document: dict[str, Any] = {
        "task_id": found.task_id,
        "routed": found.routed.model_dump(mode="json"),
        "sessions": found.sessions,
        "composed": None if found.composed is None else found.composed.model_dump(mode="json"),
        "judged": None if found.judged is None else found.judged.model_dump(mode="json"),
        "kernels": found.kernels,
    }
    if as_json:
        emit_json(document)
        return
    rows = [("task", found.task_id), ("route", f"{found.routed.route}: {found.routed.detail}")]
    if found.composed is not None:
        share = f"{found.composed.flops_share:.0%} of its arithmetic, {found.composed.bytes_share:.0%} of its bytes"
        rows.append(("replaced", share))
        rows.append(("on references", f"{len(found.composed.left)} different parts"))
    if found.judged is not None:
        reason = getattr(found.judged.verdict, "reason", None)
        simulated = found.judged.feedback is not None and found.judged.feedback.simulated
        said = f"{found.judged.verdict.verdict}{f' {reason.code}' if reason else ''}"
        rows.append(("the whole", f"{said} ({SIMULATED})" if simulated else said))
        if found.judged.speedup is not None:
            rows.append(("speedup", f"{found.judged.speedup.ratio:.3f}x over the fastest baseline"))
    rows.append(("promoted", ", ".join(found.kernels) or "none"))
    emit_table("Module", ("", ""), rows)
