"""Help of a group of commands: each command with its whole purpose."""

from typing import Any

from typer.core import TyperGroup

LONGEST_PURPOSE = 400
"""Number of characters of a command's purpose in its group's help, at most. Chosen; the longest has 150."""


class CommandGroup(TyperGroup):
    """A group whose help has each command's purpose whole: typer cuts it at the end of a line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # Any: classes that typer keeps private
        """Write the first sentence of each command's help."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(LONGEST_PURPOSE)) for name, one in found if one and not one.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
