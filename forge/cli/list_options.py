"""Options of lists: filters, order and length."""

from typing import Annotated

import typer

MOST_ROWS = 1_000_000
"""Largest limit of a list, in rows: more than any ledger holds."""
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", help="Show at most N rows.", min=1, max=MOST_ROWS, show_default=False),
]
Sort = Annotated[
    str | None,
    typer.Option(
        "--sort", metavar="COLUMN", help="Order by a column of the table; -COLUMN is descending.", show_default=False
    ),
]
OnlyOp = Annotated[str | None, typer.Option("--op", help="Only this operation.", show_default=False)]
OnlyGpu = Annotated[str | None, typer.Option("--gpu", help="Only this processor.", show_default=False)]
