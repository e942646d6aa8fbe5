"""Chooses and orders the rows of a list."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from forge.errors import UnknownName

Document = dict[str, Any]  # Any: a JSON document
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
