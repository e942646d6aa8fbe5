"""The command line: one file per noun. stdout carries data, stderr carries messages.

A command imports its own file alone, and what is heavier than Typer only when it runs. `forge --help` and a plain
`forge lookup` import not even that.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forge.cli.index import GROUPS, SUBGROUPS

if TYPE_CHECKING:
    from typer.core import TyperGroup


def command_tree() -> "TyperGroup":
    """Return `forge` with all of its commands."""
    from forge.cli.tree import tree_of

    return tree_of(None)


def command_of(arguments: Sequence[str]) -> str:
    """Return the command in `arguments` without its own arguments: `forge task create`, `forge ledger key show`."""
    words = 1 if not arguments or arguments[0] not in GROUPS else 3 if tuple(arguments[:2]) in SUBGROUPS else 2
    named = arguments[:words]
    return " ".join(["forge", *(name for name in named if not name.startswith("-"))])
