"""Lays a table out as lines of text, so that no number, id or path is broken in two.

Text wraps between words only. If the longest words of all columns don't fit beside each other, each row becomes a
record: one line for each column.
"""

import unicodedata
from collections.abc import Sequence

from forge.cli.colour import Painter

PADDING, EDGES = 3, 1
"""Characters that a column takes beside its content, and those that the table takes once."""
INDENT = "  "
"""Space before each line, and between the name and the value of a record."""
LEAST_ROOM = 20
"""Smallest width of a record's value, in characters, on a terminal that is narrower than its name needs."""

Cells = Sequence[str]


def table_lines(
    columns: Cells, rows: Sequence[Cells], paint: Painter, *, limit: int | None, cell_limit: int | None = None
) -> list[str]:
    """Return the lines of a table within `limit` characters; None: as wide as its content, cells up to `cell_limit`.

    A table whose columns have no names has no heading.
    """
    widths = _widths(columns, rows, limit) if limit is not None else _whole_widths(columns, rows, cell_limit)
    if widths is None:
        assert limit is not None
        return _record_lines(columns, rows, paint, limit)
    lines = []
    if any(columns):
        lines += _row_lines(columns, widths, [paint.heading] * len(columns))
        lines.append(" " + "─" * (sum(widths) + PADDING * len(widths) - 1))
    painted = [paint.of_column(column) for column in columns]
    for row in rows:
        lines += _row_lines(row, widths, painted)
    return [*lines, ""]


def cell_width(text: str) -> int:
    """Return the number of a terminal's cells that a line takes: two for a wide letter, none for a combining mark."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return len(text) + wide - sum(unicodedata.combining(one) > 0 for one in text)


def _row_lines(row: Cells, widths: Sequence[int], painted: Sequence[object]) -> list[str]:
    cells = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines = []
    for place in range(max(map(len, cells), default=0)):
        line = ""
        for cell, width, paint in zip(cells, widths, painted, strict=True):
            text = cell[place] if place < len(cell) else ""
            assert callable(paint)
            line += INDENT + paint(text) + " " * (width - cell_width(text) + 1)
        lines.append(line.rstrip())
    return lines


def _wrapped(cell: str, width: int) -> list[str]:
    """Return the lines of a cell, broken between words; a word that is longer than the width is broken as well."""
    lines = []
    for line in cell.splitlines() or [""]:
        if cell_width(line) <= width:
            lines.append(line)
            continue
        current = ""
        for word in line.split(" "):
            longer = f"{current} {word}" if current else word
            if cell_width(longer) <= width:
                current = longer
                continue
            lines += [current] if current else []
            lines += [word[start : start + width] for start in range(0, len(word) - width, width)]
            current = word[(max(len(word) - 1, 0) // width) * width :]
        lines.append(current)
    return lines


def _whole_widths(columns: Cells, rows: Sequence[Cells], cell_limit: int | None) -> list[int]:
    whole = [max(map(_longest_line, column)) for column in _by_column(columns, rows)]
    return whole if cell_limit is None else [min(width, cell_limit) for width in whole]


def _by_column(columns: Cells, rows: Sequence[Cells]) -> list[list[str]]:
    return [[column, *(row[place] for row in rows)] for place, column in enumerate(columns)]


def _widths(columns: Cells, rows: Sequence[Cells], limit: int) -> list[int] | None:
    """Return each column's width in characters, within `limit` for all; None if the longest words don't fit.

    Space is shared evenly, so that short columns don't wrap because of long ones.
    """
    cells = _by_column(columns, rows)
    least = [max(map(_longest_word, column)) for column in cells]
    whole = [max(map(_longest_line, column)) for column in cells]
    space = limit - EDGES - PADDING * len(columns)
    if not any(columns):  # facts: their names stay whole
        least[:1] = whole[:1]
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
    return max(map(cell_width, cell.split()), default=0)


def _longest_line(cell: str) -> int:
    return max(map(cell_width, cell.splitlines()), default=0)


def _record_lines(columns: Cells, rows: Sequence[Cells], paint: Painter, limit: int) -> list[str]:
    """Return each row as lines of name and value, with an empty line between rows. Values wrap between words only.

    An empty cell has no line, unless the row has nothing else. A value without a space isn't broken: a terminal that
    wraps it still copies it whole.
    """
    named = any(columns)
    lines = []
    for place, row in enumerate(rows):
        facts = list(zip(columns, row, strict=True)) if named else [(row[0], INDENT.join(row[1:]))]
        lines += [""] if place and named else []
        beside = max(len(name) for name, _ in (facts if named else ((one[0], "") for one in rows)))
        for name, value in [one for one in facts if one[1]] or facts:
            lines += _fact_lines(name, value, paint, beside=min(beside, limit // 3), limit=limit)
    return [*lines, ""]


def _fact_lines(name: str, value: str, paint: Painter, *, beside: int, limit: int) -> list[str]:
    """Return the lines of one fact: the value beside the name, or below it if it has lines of its own."""
    painted = paint.of_column(name)
    if len(value.splitlines()) > 1:
        return [INDENT + name, *(INDENT * 2 + painted(line) for line in value.splitlines())]
    start = f"{INDENT}{name:<{beside}}{INDENT}"
    room = max(LEAST_ROOM, limit - len(start))
    first, *following = _between_words(value, room)
    return [(start + painted(first)).rstrip(), *(" " * len(start) + painted(line) for line in following)]


def _between_words(text: str, room: int) -> list[str]:
    """Return lines within the room, except that a word that is longer has a line of its own."""
    lines: list[str] = []
    for word in text.split():
        if lines and cell_width(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]
