"""The command line: one file per noun. stdout carries data, stderr carries messages.

Nothing heavier than Typer is imported before a command runs, so that `forge --help` is quick.
"""

from functools import cache
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_group

from forge import __version__
from forge.cli import (
    audit,
    benchmark,
    check,
    claims,
    explain,
    kernel,
    ledger,
    lesson,
    lookup,
    new,
    notes,
    operation,
    phases,
    pipeline,
    profile,
    proof,
    recommend,
    run,
    skill,
    start,
    task,
    watch,
    work,
)
from forge.cli.output import emit_text

app = typer.Typer(
    name="forge",
    help="The trust layer for machine-written GPU kernels: verify, measure, promote on recorded evidence.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(asked: bool) -> None:
    if asked:
        emit_text(f"forge {__version__}\n")
        raise typer.Exit


@app.callback()
def forge(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    """Options that stand before any command."""


start.register(app)
explain.register(app)
check.register(app)
watch.register(app)
new.register(app)
phases.register(app)
pipeline.register(app)
lookup.register(app)
notes.register(app)
proof.register(app)
profile.register(app)
recommend.register(app)
NOUNS = {
    "task": task.app,
    "run": run.app,
    "kernel": kernel.app,
    "benchmark": benchmark.app,
    "claims": claims.app,
    "ledger": ledger.app,
    "op": operation.app,
    "skill": skill.app,
    "audit": audit.app,
    "lesson": lesson.app,
    "work": work.app,
}
for name, commands in NOUNS.items():
    app.add_typer(commands, name=name)


@cache
def command_tree() -> TyperGroup:
    """Return `forge` with all of its commands, made once: typer would make it anew for each question."""
    return get_group(app)


def command_of(arguments: list[str]) -> str:
    """Return the command in `arguments` without its own arguments: `forge task create`."""
    named = arguments[: 2 if arguments and arguments[0] in NOUNS else 1]
    return " ".join(["forge", *(name for name in named if not name.startswith("-"))])
