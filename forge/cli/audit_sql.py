"""audit: questions in SQL, over read-only views."""

from typing import Annotated

import typer

from forge.cli.audit_options import AuditOptions


def sql(
    form: AuditOptions,
    query: Annotated[str, typer.Argument(metavar="SELECT", help="One statement of SQLite's SQL.")],
    limit: Annotated[int, typer.Option(help="Largest number of rows.", min=1, max=1_000_000)] = 1000,
    seconds: Annotated[float, typer.Option(help="Longest time for the query, in seconds.", min=0.1, max=600)] = 10.0,
) -> None:
    """Run one SELECT over the views that `forge audit views` lists. The database refuses all other statements.

    Example: forge audit sql "SELECT op, count(*) FROM kernels GROUP BY op"
    """
    from forge.app.audit.free_sql import ask

    form.give_quickly(lambda workspace: ask(workspace, query, limit=limit, seconds=seconds))


def views(form: AuditOptions) -> None:
    """List the views that `forge audit sql` may read: name, columns, content.

    Example: forge audit views
    """
    from forge.app.audit.free_sql import views as asked

    form.give_quickly(asked)


COMMANDS = (sql, views)
"""Commands of this file, in the order of the help."""
