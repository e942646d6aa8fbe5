"""Output of all commands: tables and JSON on stdout, progress and hints on stderr."""

import re
import sys
from collections.abc import Sequence

from forge.cli.colour import Painter

TYPE_CHECKING = False  # as typing has it, which takes long to import
if TYPE_CHECKING:
    from typing import TextIO

Row = Sequence[object]


WIDEST_CELL = 240
"""Largest width of a cell, in characters, if stdout isn't a terminal. Ids and paths then stay on one line, and a long
document doesn't pad every row."""
_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that JSON allows unescaped but that control a terminal: control codes and text-direction marks."""


def emit_json(document: object) -> None:
    """Print one JSON document. Paths that aren't UTF-8 and characters that control a terminal are escaped."""
    import orjson

    try:
        content = orjson.dumps(document, option=orjson.OPT_INDENT_2)
    except TypeError:  # orjson refuses text that was decoded from bytes that aren't UTF-8
        content = orjson.dumps(_encodable(document), option=orjson.OPT_INDENT_2)
    sys.stdout.write(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", content.decode()) + "\n")


def emit_json_line(document: object) -> None:
    """Print one JSON document on one line at once, for a program that reads answers as they come."""
    import orjson

    content = orjson.dumps(_encodable(document)).decode()
    sys.stdout.write(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", content) + "\n")
    sys.stdout.flush()


def _encodable(document: object) -> object:
    """Return a document in which text that UTF-8 can't encode is escaped, as in tables."""
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
    """Print a table. If stdout isn't a terminal, it is as wide as its content; else it fits the terminal's width."""
    from forge.cli.table_layout import table_lines

    watched, paint = sys.stdout.isatty(), painter(sys.stdout)
    cells = [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    limit, cell_limit = (terminal_width(), None) if watched else (None, WIDEST_CELL)
    lines = table_lines([visible(column) for column in columns], cells, paint, limit=limit, cell_limit=cell_limit)
    sys.stdout.write("".join(f"{line}\n" for line in ([paint.heading(visible(title))] if title else []) + lines))


def emit_answer(document: object, title: str, columns: Sequence[str], rows: Sequence[Row], *, as_json: bool) -> None:
    """Print an answer: its document as JSON, or its rows as a table."""
    if as_json:
        emit_json(document)
    else:
        emit_table(title, columns, rows)


def painter(stream: "TextIO") -> Painter:
    """Return what paints for a stream: nothing unless it is a terminal that wants colours."""
    from forge.app.machine.terminal import wants_colour

    return Painter(coloured=stream.isatty() and wants_colour())


def terminal_width() -> int:
    """Return the width of the terminal on stdout, in characters; COLUMNS=0 is ignored."""
    import shutil

    return shutil.get_terminal_size().columns


def emit_text(text: str) -> None:
    """Print a document unchanged; on a terminal, escape characters that would control it."""
    sys.stdout.write("\t".join(map(visible, text.split("\t"))) if sys.stdout.isatty() else text)


def say(message: str) -> None:
    """Print one line on stderr."""
    sys.stderr.write(visible(message).replace("\n", r"\n") + "\n")


def visible(text: str) -> str:
    """Return the text with characters that control a terminal escaped, except ends of lines."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)


SIMULATED = "SIMULATED"
"""Word beside each verdict for which an interpreter stood in for the target."""


def simulated_text(flag: object) -> str:
    """Return SIMULATED if the flag of a verdict says so, else an empty cell."""
    return SIMULATED if flag else ""


WHOLE, PLAIN_LIMIT = 1000, 1e15
"""Numbers from WHOLE on are printed without decimals; those from PLAIN_LIMIT on as powers of ten."""


def number_text(value: float) -> str:
    """Return a number in four digits, or in more if its whole part has more: 1.291, 20340, 1.2e-05."""
    return f"{value:.0f}" if WHOLE <= abs(value) < PLAIN_LIMIT else f"{value:.4g}"


def short(digest: object) -> str:
    """Return the first twelve digits of a digest."""
    return str(digest)[:12]


def shape_text(shape: object) -> str:
    """Return a shape in the form of the command line: `batch=16,hidden_size=4096`."""
    assert isinstance(shape, dict)
    return ",".join(f"{axis}={size}" for axis, size in sorted(shape.items()))
