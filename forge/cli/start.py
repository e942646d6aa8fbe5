"""init, doctor, demo."""

from pathlib import Path
from typing import Annotated

import typer

from forge.cli.options import Json
from forge.cli.output import emit_json, emit_table, say


def register(app: typer.Typer) -> None:
    """Add these commands to the top level."""
    app.command()(init)
    app.command()(doctor)
    app.command()(demo)


def init(
    directory: Annotated[Path, typer.Argument(help="The folder to make a workspace of.")] = Path(),
    origin: Annotated[str, typer.Option(help="A name for this ledger, for people.")] = "forge",
    as_json: Json = False,
) -> None:
    """Make a workspace: a new ledger and its folders.

    Example: forge init my-kernels
    """
    from forge.app.workspace import Workspace

    with Workspace.create(directory.resolve(), origin=origin) as workspace:
        made = {"home": str(workspace.home), "ledger_id": workspace.ledger.ledger_id}
    if as_json:
        emit_json(made)
    else:
        emit_table("Workspace", ("home", "ledger"), [(made["home"], made["ledger_id"])])
        say("next: forge task create --help")


def doctor(as_json: Json = False) -> None:
    """Tell what this machine can do: languages, platforms, isolation.

    Example: forge doctor
    """
    from forge.app.doctor import examine_machine

    found = examine_machine()
    if as_json:
        emit_json(found)
        return
    rows = [(name, found[name]) for name in ("processor", "python", "torch", "triton", "compiler", "sqlite")]
    for group in ("platforms", "languages"):
        facts = found[group]
        assert isinstance(facts, dict)
        rows += [(f"{group[:-1]} {name}", _facts(fact)) for name, fact in facts.items()]
    wall = found["isolation"]
    assert isinstance(wall, dict)
    rows.append(("isolation", wall["level"]))
    rows.append(("missing", ", ".join(wall["missing"]) or "nothing"))
    emit_table("This machine", ("", ""), rows)
    emit_table("Isolation, the strongest first", ("level", "here", "lacks", "next step"), _rungs(found["ladder"]))
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    for warning in warnings:
        say(f"note: {warning}")


def _rungs(ladder: object) -> list[tuple[str, str, str, str]]:
    assert isinstance(ladder, list)
    rows = []
    for step in ladder:
        here = "reached" if step["reached"] else "not reached"
        rows += [(step["level"], here, f"{one['what']}: {one['reason']}", one["next_step"]) for one in step["lacks"]]
        if not step["lacks"]:
            rows.append((step["level"], here, "nothing", ""))
    return rows


def _facts(fact: dict[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in fact.items() if value is not None)


def demo(
    home: Annotated[
        Path | None,
        typer.Option("--home", help="A new folder for the demonstration's workspace.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the whole loop on shipped examples: one kernel promoted, one cheat refused, a lookup.

    Example: forge demo --home .demo
    """
    from forge.cli.demo import run_demo

    raise typer.Exit(run_demo(home, as_json=as_json))
