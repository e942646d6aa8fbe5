"""Output of an audit's answer: a table with notes, JSON, CSV, Parquet or a picture."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forge.cli.output import emit_json, emit_table, number_text, say, simulated_text, visible
from forge.errors import UsageError

if TYPE_CHECKING:
    from forge.app.audit.answer import Answer

Csv = Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")]
Parquet = Annotated[
    Path | None,
    typer.Option("--parquet", metavar="FILE", help="Also write the rows to a Parquet file.", show_default=False),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Also write a picture: FILE.svg or FILE.png.", show_default=False),
]
Draw = Annotated[bool, typer.Option("--draw", help="Draw a picture in the terminal instead of a table.")]
Op = Annotated[str | None, typer.Option("--op", help="Only this operation.", show_default=False)]
Gpu = Annotated[str | None, typer.Option("--gpu", help="Only tasks for this processor.", show_default=False)]
DType = Annotated[str | None, typer.Option("--dtype", help="Only this element type.", show_default=False)]
Author = Annotated[str | None, typer.Option("--author", help="Only candidates of this author.", show_default=False)]
Language = Annotated[str | None, typer.Option("--language", help="Only this language.", show_default=False)]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        help="Speedup over eager, compile or vendor. Default: the baseline that had to be beaten.",
        show_default=False,
    ),
]
BASELINES = ("eager", "compile", "vendor")


def emit_answer(
    answer: "Answer",
    *,
    as_json: bool,
    as_csv: bool,
    parquet: Path | None,
    plot: tuple[Path | None, Callable[[Path], None]] | None = None,
    draw: tuple[bool, Callable[[], None]] | None = None,
) -> None:
    """Print an answer in the one form that the user asked for; write files first.

    `plot` is the requested file and the function that draws it; `draw` is the request and the function that draws in
    the terminal. Both are None if the answer can't be drawn. Raises UsageError for two forms at once.
    """
    drawn = draw is not None and draw[0]
    if as_json + as_csv + drawn > 1:
        raise UsageError("--json, --csv and --draw exclude each other: expected one form on stdout")
    if parquet is not None:
        from forge.app.audit.files import write_parquet

        write_parquet(answer, parquet)
        say(f"wrote {parquet}")
    if plot is not None and plot[0] is not None:
        plot[1](plot[0])
        say(f"drew {plot[0]}")
    if draw is not None and drawn:
        draw[1]()
    elif as_json:
        emit_json(answer.document())
    elif as_csv:
        from forge.app.audit.files import as_csv as written

        sys.stdout.write(written(answer))
    else:
        _emit_rows(answer)
    if not as_json:
        for note in answer.notes:
            say(note)


def _emit_rows(answer: "Answer") -> None:
    shown = answer.shown or answer.columns
    places = [answer.columns.index(name) for name in shown]
    rows = [tuple(_cell(row, answer.columns, place) for place in places) for row in answer.rows]
    emit_table(answer.title, shown, rows)


def _cell(row: Sequence[object], columns: Sequence[str], place: int) -> object:
    """Return a cell for a table; a row's flag `simulated` becomes the word that stands beside each such verdict."""
    flag = columns[place] == "simulated" and row[place] in (0, 1, None)
    return _visible(simulated_text(row[place]) if flag else row[place])


def _visible(cell: object) -> object:
    """Return a cell for a table: numbers in four digits, digests shortened, control characters escaped."""
    if isinstance(cell, float):
        return number_text(cell)
    if not isinstance(cell, str):
        return cell
    plain = visible(cell).replace("\n", r"\n")
    digest = len(plain) == 64 and all(one in "0123456789abcdef" for one in plain)
    return plain[:12] if digest else plain


def require_baseline(untrusted_name: str | None) -> str | None:
    """Return the name if it is a measured baseline or None; otherwise raise UnknownName."""
    from forge.errors import UnknownName

    if untrusted_name is not None and untrusted_name not in BASELINES:
        raise UnknownName("baseline", untrusted_name, list(BASELINES))
    return untrusted_name
