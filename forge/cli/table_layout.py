"""Lays a table out for a terminal's width, so that no number, id or path is broken in two.

Text wraps between words only. If the longest words of all columns don't fit beside each other, each row becomes a
record: one line for each column.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PADDING, EDGES = 3, 1
"""Characters that a column takes beside its content, and those that the table takes once."""
INDENT = "  "
"""Space before each line of a record, and between its name and value."""


def print_table(
    console: "Console", columns: Sequence[str], rows: Sequence[Sequence[str]], *, cell_limit: int | None
) -> None:
    """Print a table as wide as its content, cells up to `cell_limit` characters; None: fit the console's width."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    widths = _widths(columns, rows, console.width) if cell_limit is None else [None] * len(columns)
    if widths is None:
        _print_records(console, columns, rows)
        return
    table = Table(box=box.SIMPLE_HEAD)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(Text(column), overflow="fold", width=width, max_width=cell_limit)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], limit: int) -> list[int] | None:
    """Return each column's width in characters, within `limit` for all; None if the longest words don't fit.

    Space is shared evenly, so that short columns don't wrap because of long ones.
    """
    cells = [[column, *(row[place] for row in rows)] for place, column in enumerate(columns)]
    least = [max(map(_longest_word, column)) for column in cells]
    whole = [max(map(_longest_line, column)) for column in cells]
    space = limit - EDGES - PADDING * len(columns)
    spare = space - sum(least)
    if spare < 0:
        return None
    widths = list(least)
    narrow_first = sorted(range(len(columns)), key=lambda place: whole[place] - least[place])
    for done, place in enumerate(narrow_first):
        added = min(whole[place] - least[place], spare // (len(columns) - done))
        widths[place] += added
        spare -= added
    return widths


def _longest_word(cell: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, cell.split()), default=0)


def _longest_line(cell: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, cell.splitlines()), default=0)


def _print_records(console: "Console", columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print each row as lines of name and value, with an empty line between rows. Values wrap between words only."""
    named = any(columns)
    for place, row in enumerate(rows):
        facts = list(zip(columns, row, strict=True)) if named else [(row[0], INDENT.join(row[1:]))]
        if place and named:
            _print_line(console, "")
        beside = max(len(name) for name, _ in (facts if named else ((one[0], "") for one in rows)))
        for name, value in facts:
            for line in _fact_lines(name, value, beside=min(beside, console.width // 3), limit=console.width):
                _print_line(console, line)
    _print_line(console, "")


def _fact_lines(name: str, value: str, *, beside: int, limit: int) -> list[str]:
    """Return the lines of one fact: the value beside the name, or below it if it has lines of its own."""
    if len(value.splitlines()) > 1:
        return [INDENT + name, *(INDENT * 2 + line for line in value.splitlines())]
    start = f"{INDENT}{name:<{beside}}{INDENT}"
    room = max(20, limit - len(start))
    lines = textwrap.wrap(value, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [(start + lines[0]).rstrip(), *(" " * len(start) + line for line in lines[1:])]


def _print_line(console: "Console", line: str) -> None:
    """Print a line without breaking it: a terminal that wraps it still copies it whole."""
    from rich.text import Text

    console.print(Text(line), soft_wrap=True)
