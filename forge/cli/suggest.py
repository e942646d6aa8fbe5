"""Suggests the next command, for the same workspace."""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from typing import Literal

from forge.cli.output import say

RUN_TEXT = re.compile(r"last(-[0-9]+)?|r[0-9]+|[0-9]{8}T[0-9]{6}[0-9a-z_]*")
"""A run as a person writes it: `last`, `last-1`, `r12`, or an id's beginning with its date and time."""
MOST_NAMES = 100
"""Number of names that are tried for a suggested folder, at most. Chosen; each costs one look at the disk."""


def suggest(kind: Literal["next", "try"], command: str) -> None:
    """Print a command on stderr, with the `--home` of the current command."""
    say(f"{kind}: {at_home(command, sys.argv[1:])}")


def unused(folder: str) -> str:
    """Return a name for a new folder here: this one, or with the first number that makes it new."""
    names = (folder, *(f"{folder}-{number}" for number in range(2, MOST_NAMES)))
    return next((name for name in names if not os.path.lexists(name)), folder)


def after_interruption(arguments: Sequence[str]) -> tuple[str, str]:
    """Return what became of an interrupted command with these arguments, and the command to give next.

    Only the run that stands right behind the command is known: an option may come before it, and it may be a kernel.
    """
    from forge.cli import command_of
    from forge.cli.index import RUN_COMMANDS

    if arguments[:1] == ["check"]:
        return "a check records nothing", "forge check --help"
    if RUN_COMMANDS.isdisjoint(arguments[:1]):
        return "what was recorded stays", f"{command_of(arguments)} --help"
    named = next(iter(arguments[1:2]), "")
    is_run = RUN_TEXT.fullmatch(named) is not None
    following = f"forge run show {named}" if is_run else "forge run list"
    return "what was recorded stays, and a run can be taken up again", following


def at_home(command: str, arguments: Sequence[str]) -> str:
    """Return the command with the `--home` in `arguments`, if it accepts one and has none."""
    home = _home_among(arguments)
    if home is None or "--home" in command or not _takes_home(command):
        return command
    return f"{command} --home {shlex.quote(home)}"


def _home_among(arguments: Sequence[str]) -> str | None:
    for place, argument in enumerate(arguments):
        if argument == "--home":
            return next(iter(arguments[place + 1 :]), None)
        if argument.startswith("--home="):
            return argument.removeprefix("--home=")
    return None


def _takes_home(command: str) -> bool:
    """Return True if the text is exactly one command of Forge that has the option `--home`."""
    from forge.cli.completing import completion_table

    words = command.split()
    if words[0] != "forge" or {"--help", "init"} & set(words) or any(one in command for one in ";,("):
        return False
    commands = completion_table()["commands"]
    named = (commands.get(" ".join(words[1:end])) for end in range(2, len(words) + 1))
    return any("--home" in found["options"] for found in named if found is not None)
