"""What a person or a program gets to see: tables and JSON on stdout, progress and hints on stderr."""

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

Row = Sequence[object]
WIDEST, WIDEST_CELL = 100_000, 240
"""Characters of a table and of one cell where nobody is looking: ids and paths stay in one piece, for whatever reads
them, and a document in a cell doesn't pad every row to its length."""
_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What a terminal may obey and JSON allows as it is: controls, and marks that turn the direction of text."""


def emit_json(document: object) -> None:
    """One JSON document on stdout, whatever bytes the paths in it have; nothing in it that a terminal would obey."""
    import orjson

    try:
        content = orjson.dumps(document, option=orjson.OPT_INDENT_2)
    except TypeError:  # what was decoded from bytes that are no UTF-8 can't stand in a document
        content = orjson.dumps(_encodable(document), option=orjson.OPT_INDENT_2)
    sys.stdout.write(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", content.decode()) + "\n")


def _encodable(document: object) -> object:
    """A document with the escapes of what UTF-8 can't hold, as tables show them."""
    match document:
        case str():
            return document.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_encodable(name): _encodable(value) for name, value in document.items()}
        case list() | tuple():
            return [_encodable(one) for one in document]
        case _:
            return document


def emit_table(title: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """A table on stdout, as wide as it needs to be where nobody is looking."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(visible(title)) if title else None, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold"
    )
    watched = sys.stdout.isatty()
    for column in columns:
        table.add_column(Text(visible(column)), overflow="fold", max_width=None if watched else WIDEST_CELL)
    for row in rows:
        table.add_row(*(Text("" if cell is None else visible(str(cell))) for cell in row))
    Console(width=terminal_width() if watched else WIDEST).print(table)


def terminal_width() -> int:
    """Columns of the terminal on stdout; where COLUMNS is 0 it says nothing of them."""
    return shutil.get_terminal_size().columns


def emit_text(text: str) -> None:
    """A document on stdout as it is, but on a terminal without what that would obey."""
    sys.stdout.write("\t".join(map(visible, text.split("\t"))) if sys.stdout.isatty() else text)


def say(message: str) -> None:
    """One line of talk."""
    sys.stderr.write(visible(message).replace("\n", r"\n") + "\n")


def visible(text: str) -> str:
    """The text with no character that a terminal would obey, save the ends of lines."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)


@contextmanager
def reporting(phase: str) -> Iterator[Callable[[str], None]]:
    """Show how far a long phase is: a spinner on a terminal, a line for each step elsewhere."""
    if not sys.stderr.isatty():
        yield lambda step: say(f"{phase}: {step}")
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(phase) as status:
        yield lambda step: status.update(f"{phase}: {step}")


def short(digest: object) -> str:
    """The first twelve digits of a digest."""
    return str(digest)[:12]


def shape_text(shape: object) -> str:
    """A shape as it is written on the command line."""
    assert isinstance(shape, dict)
    return ",".join(f"{axis}={size}" for axis, size in sorted(shape.items()))
