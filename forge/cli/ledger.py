"""The ledger: read it, check it, fold it again."""

from typing import Annotated, Any

import typer

from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_table, say, short

app = typer.Typer(help="The ledger: the only authority, append-only.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def log(
    after: Annotated[int, typer.Option(help="Start behind this sequence number.", min=0)] = 0,
    limit: Annotated[int | None, typer.Option(help="At most so many events.", min=1, show_default=False)] = None,
    of_type: Annotated[
        list[str] | None,
        typer.Option("--type", help="Only events of this type; may be repeated.", show_default=False),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show events in order.

    Example: forge ledger log --type KernelPromoted
    """
    from forge.app import reads

    with open_workspace(home) as workspace:
        types = tuple(of_type) if of_type else None
        events: list[dict[str, Any]] = reads.log(workspace, after_seq=after, limit=limit, types=types)  # Any: JSON
    if as_json:
        emit_json(events)
    else:
        rows = [
            (e["seq"], e["recorded_at"][:19], e["type"], e["stream"][:60], e["actor"], short(e["event_hash"]))
            for e in events
        ]
        emit_table("Ledger", ("seq", "recorded at", "type", "stream", "actor", "hash"), rows)


@app.command()
def verify(home: Home = None, as_json: Json = False) -> None:
    """Derive the whole chain again from raw rows, with every blob and sealed run that it names.

    Example: forge ledger verify
    """
    from forge.app.reads import verify_ledger
    from forge.app.workspace import find_home

    report: dict[str, Any] = verify_ledger(find_home(home))  # Any: a JSON document
    if as_json:
        emit_json(report)
    else:
        rows = [("ok" if report["ok"] else "BROKEN", report["events"], report["head"])]
        emit_table("Ledger", ("", "events", "head"), rows)
        if report["problems"]:
            problems = [(p["seq"], p["what"], p["expected"], p["found"]) for p in report["problems"]]
            emit_table("", ("seq", "what", "expected", "found"), problems)
    if not report["ok"]:
        say("restore kernel_registry.db and forge_runs/ from a copy, then check again")
        say("try: forge ledger verify")
        raise typer.Exit(1)


@app.command()
def rebuild(home: Home = None, as_json: Json = False) -> None:
    """Fold every published projection again from zero, and say which files differed.

    Example: forge ledger rebuild
    """
    from forge.app import reads

    with open_workspace(home) as workspace:
        compared = reads.rebuild(workspace)
    if as_json:
        emit_json({"files": compared})
    else:
        emit_table("Projections", ("file", "state"), [(one["file"], one["state"]) for one in compared])
