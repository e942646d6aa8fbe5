"""notes: the history of one operation."""

from typing import Annotated

import typer

from forge.cli.opening import ask_events
from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_text


def notes(
    op: Annotated[str, typer.Argument(metavar="OP", help="An operation; forge op list shows them.")],
    gpu: Annotated[str | None, typer.Option(help="Only for this processor.", show_default=False)] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Print the notes on an operation as Markdown: kernels, experiments, lessons, open questions.

    Example: forge notes rmsnorm --gpu h200 > notes.md
    """
    from forge.app.lessons import notes as told

    if as_json:
        emit_json(ask_events(home, lambda workspace: told.gather(workspace, op=op, gpu=gpu)))
    else:
        emit_text(ask_events(home, lambda workspace: told.notes(workspace, op=op, gpu=gpu)))
