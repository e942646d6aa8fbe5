"""Writes the help of a command without parsing, which loads pydantic to convert values."""

from collections.abc import Sequence
from typing import Any

from typer.core import TyperGroup

from forge.cli.index import FILES
from forge.cli.tree import tree_of

HELP = ("-h", "--help")


def help_page(arguments: Sequence[str]) -> str | None:
    """Return the help that the words of a command and one last option ask for; None for anything else."""
    *words, option = arguments or [""]
    if option not in HELP or not words or words[0] not in FILES:
        return None
    found: Any = tree_of(words[0])  # Any: a class that typer keeps private
    context = found.context_class(found, info_name="forge", **found.context_settings)
    for word in words:
        command = found.get_command(context, word) if isinstance(found, TyperGroup) else None
        if command is None:
            return None
        found = command
        context = found.context_class(found, info_name=word, parent=context, **found.context_settings)
    page: str = found.get_help(context)
    return page
