"""Asks on a terminal before something final is recorded, and says what a dry run left out.

Scripts, whose stdin is no terminal, aren't asked.
"""

import shlex
import sys
from typing import Annotated

import typer

from forge.cli.output import say, visible
from forge.cli.suggest import suggest

Yes = Annotated[bool, typer.Option("--yes", help="Don't ask on a terminal.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change. Record nothing.")]


def require_yes(question: str, *, yes: bool) -> None:
    """Ask, and exit with status 1 unless the answer is yes. `yes` or a stdin that is no terminal asks nothing."""
    if yes or not sys.stdin.isatty():
        return
    sys.stderr.write(f"{visible(question)} It can't be undone. [y/N]: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return
    say("nothing was recorded")
    suggest("try", f"forge {shlex.join(sys.argv[1:])} --yes")
    raise typer.Exit(1)


def say_dry_run() -> None:
    """Say that nothing was recorded, and name the command that records it."""
    say("a dry run: nothing was recorded")
    suggest("next", f"forge {shlex.join(one for one in sys.argv[1:] if one != '--dry-run')}")
