"""Filters, order and length of lists."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import typer

from forge.errors import UnknownName

Document = dict[str, Any]  # Any: a JSON document
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
Key = Callable[[Document], Any]  # Any: what a column is ordered by


def listed(
    rows: Iterable[Document],
    *,
    only: Mapping[str, tuple[str | None, Key]],
    columns: Mapping[str, Key],
    sort: str | None,
    limit: int | None,
) -> list[Document]:
    """Return the rows with the wanted values, in the wanted order, up to the limit.

    `only` has for each option its wanted value, or None, and what a row has. `columns` says what orders each column.
    Raises UnknownName for a value that no row has, and for an unknown column.
    """
    found = list(rows)
    for option, (wanted, key) in only.items():
        if wanted is None:
            continue
        present = {str(key(row)) for row in found}
        if present and wanted not in present:
            raise UnknownName(option, wanted, sorted(present))
        found = [row for row in found if str(key(row)) == wanted]
    if sort is not None:
        name = sort.removeprefix("-")
        if name not in columns:
            raise UnknownName("column", name, list(columns))
        found.sort(key=lambda row: (columns[name](row) is None, columns[name](row)), reverse=sort.startswith("-"))
    return found[:limit]
