"""audit: questions in SQL, over read-only views."""

from typing import Annotated

import typer

from forge.cli.answering import Csv, Parquet, emit_answer
from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json


def register(app: typer.Typer) -> None:
    """Add these commands to the noun."""
    app.command()(sql)
    app.command()(views)


def sql(
    query: Annotated[str, typer.Argument(metavar="SELECT", help="One statement of SQLite's SQL.")],
    limit: Annotated[int, typer.Option(help="Largest number of rows.", min=1, max=1_000_000)] = 1000,
    seconds: Annotated[float, typer.Option(help="Longest time for the query, in seconds.", min=0.1, max=600)] = 10.0,
    home: Home = None,
    as_json: Json = False,
    as_csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Run one SELECT over the views that `forge audit views` lists. The database refuses all other statements.

    Example: forge audit sql "SELECT op, count(*) FROM kernels GROUP BY op"
    """
    from forge.app.audit.free_sql import ask

    with open_workspace(home) as workspace:
        answer = ask(workspace, query, limit=limit, seconds=seconds)
    emit_answer(answer, as_json=as_json, as_csv=as_csv, parquet=parquet)


def views(home: Home = None, as_json: Json = False, as_csv: Csv = False, parquet: Parquet = None) -> None:
    """List the views that `forge audit sql` may read: name, columns, content.

    Example: forge audit views
    """
    from forge.app.audit.free_sql import views as asked

    with open_workspace(home) as workspace:
        answer = asked(workspace)
    emit_answer(answer, as_json=as_json, as_csv=as_csv, parquet=parquet)
