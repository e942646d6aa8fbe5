"""Makes the tree of commands, whole or with the files of one command."""

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from forge import __version__
from forge.cli.group import CommandGroup
from forge.cli.index import FILES, NOUNS, PURPOSE, TOP, VERSION
from forge.cli.output import emit_text


def _say_version(asked: bool) -> None:
    if asked:
        emit_text(f"forge {__version__}\n")
        raise typer.Exit


def forge(
    _version: Annotated[
        bool,
        typer.Option("--version", help=VERSION, callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    """Options that stand before any command."""


@cache
def tree_of(command: str | None) -> TyperGroup:
    """Return `forge` with the commands of one command's file, or with all of them for None; made once each."""
    app = typer.Typer(
        name="forge",
        help=PURPOSE,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(forge)
    for file in dict.fromkeys(FILES.values() if command is None else [FILES[command]]):
        module = import_module(f"forge.cli.{file}")
        noun = next((name for name, (one, _) in NOUNS.items() if one == file), None)
        if noun is None:
            for name in (one for one, (found, _) in TOP.items() if found == file):
                app.command(name)(getattr(module, name.replace("-", "_")))
        else:
            app.add_typer(module.app, name=noun, cls=CommandGroup)
    made = get_group(app)
    _write_arguments_large(made)
    return made


def _write_arguments_large(command: Any) -> None:  # Any: classes that typer keeps private
    """Write each argument in capitals, as the pages do: typer writes one without a name for people as in the code."""
    for one in getattr(command, "commands", {}).values():
        _write_arguments_large(one)
    for parameter in command.params:
        if parameter.param_type_name == "argument" and parameter.metavar is None:
            parameter.metavar = parameter.name.upper()
