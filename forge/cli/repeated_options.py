"""Refuses an option that is given twice and counts once: the parser would silently keep the last value."""

from collections.abc import Sequence

import typer
from typer.core import TyperGroup, TyperOption

from forge.errors import UsageError


def require_once(tree: TyperGroup, arguments: Sequence[str]) -> None:
    """Raise UsageError if an option that counts once is given twice. Other mistakes are left to the parser."""
    bad_usage = typer.BadParameter.__bases__[0]  # the class of all mistakes in arguments
    assert issubclass(bad_usage, Exception)
    command, rest = tree.commands.get(arguments[0]) if arguments else None, list(arguments[1:])
    while isinstance(command, TyperGroup):
        command = command.commands.get(rest.pop(0)) if rest else None
    if command is None:
        return
    seen = set()
    parser = command.make_parser(command.context_class(command))
    try:
        _, _, given = parser.parse_args(rest)
    except bad_usage:
        return
    for parameter in given:
        single = isinstance(parameter, TyperOption) and not parameter.multiple and not parameter.is_flag
        if single and parameter.name in seen:
            raise UsageError(f"{parameter.opts[0]} is given twice: expected it once")
        seen.add(parameter.name)
