"""rejections: why candidates were refused."""

from typing import Annotated, Any, Literal

import typer

from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_table


def register(app: typer.Typer) -> None:
    """Add this command to the top level."""
    app.command()(rejections)


def rejections(
    by: Annotated[Literal["code", "gate", "task"], typer.Option(help="What to count by.")] = "code",
    code: Annotated[str | None, typer.Option(help="Only this reason code.", show_default=False)] = None,
    gate: Annotated[str | None, typer.Option(help="Only where this gate failed first.", show_default=False)] = None,
    task: Annotated[str | None, typer.Option(help="Only this task, by its full id.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(help="List so many of the newest.", min=0)] = 20,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show why candidates were refused: how often, and the newest in full.

    Example: forge rejections --by gate --code INCORRECT_NUMERICAL
    """
    from forge.app import kernels

    with open_workspace(home) as workspace:
        found: dict[str, Any] = kernels.rejections(  # Any: a JSON document
            workspace, by=by, code=code, gate=gate, task=task, limit=limit
        )
    if as_json:
        emit_json(found)
        return
    counts = [(one[by], one["refused"], one["inconclusive"]) for one in found["counts"]]
    emit_table(f"Refused: {found['refused']}", (by, "refused", "of these without a verdict"), counts)
    newest = [(r["seq"], r["stage"], r["reason_code"], r["gate"], r["message"], r["run_id"]) for r in found["newest"]]
    emit_table("Newest", ("seq", "stage", "code", "gate", "message", "run"), newest)
