"""audit: all of its commands, in the order of the help."""

import typer

from forge.cli import audit_authors, audit_kernels, audit_speed, audit_sql
from forge.cli.option_groups import with_groups

app = typer.Typer(
    help="Answer questions about the recorded history. These commands record nothing.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for file in (audit_speed, audit_authors, audit_sql, audit_kernels):
    for command in file.COMMANDS:
        app.command()(with_groups(command))
