"""Writes an audit's rows for other programs: CSV that no spreadsheet executes, and Parquet."""

import csv
import io
import unicodedata
from pathlib import Path

from forge.app.audit.answer import Answer, Cell
from forge.errors import EnvironmentUnfit
from forge.pictures.canvas import EXTRA
from forge.pictures.replace import replace_file, require_suffix

FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\n")
"""Beginnings of texts that a spreadsheet takes for a formula, or that hide one (OWASP, "CSV Injection")."""
KEPT_CONTROLS = "\t\n"
"""Control characters that stay in a text."""
PARQUET = (".parquet",)
"""Endings of the name of a Parquet file."""


def as_csv(answer: Answer) -> str:
    """Return RFC 4180 with a header. Text that a spreadsheet would run gets an apostrophe; numbers stay numbers."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow([_harmless(name) for name in answer.columns])
    writer.writerows([_harmless(cell) for cell in row] for row in answer.rows)
    return written.getvalue()


def _harmless(cell: Cell) -> Cell:
    """Return text that neither a spreadsheet nor a terminal executes; use JSON or Parquet for the unchanged text.

    Leading spaces hide nothing, because some programs remove them. Some programs treat wide forms of the signs
    (U+FF1D and others) like the signs, and so does this function.
    """
    if not isinstance(cell, str):
        return cell
    plain = "".join(one if one in KEPT_CONTROLS or not _commands(one) else repr(one)[1:-1] for one in cell)
    if unicodedata.normalize("NFKC", plain).lstrip(" ").startswith(FORMULA_BEGINNINGS):
        return f"'{plain}"
    return plain


def _commands(sign: str) -> bool:
    """Return whether a terminal may obey the character or can't write it: control, direction mark, lone surrogate."""
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs")


def write_parquet(answer: Answer, path: Path) -> None:
    """Write one table with the answer's columns; raise EnvironmentUnfit if pyarrow isn't installed.

    Raises UsageError for a name that doesn't end in `.parquet`, or a place where no file can be written.
    """
    require_suffix(path, PARQUET)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise EnvironmentUnfit(
            f"can't write {str(path)!r}: pyarrow isn't installed; expected the extra `audit`: {EXTRA}", hint=EXTRA
        ) from error
    named = dict(zip(answer.columns, (list(column) for column in zip(*answer.rows, strict=True)), strict=False))
    columns = {name: _alike(named.get(name, [])) for name in answer.columns}
    written = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), written)
    replace_file(path, written.getvalue(), suffixes=PARQUET)


def _alike(cells: list[Cell]) -> list[Cell]:
    """Return cells of one type, as a column needs: numbers as they are, mixed cells as text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} and float in kinds:
        return [None if cell is None else float(cell) for cell in cells]
    if len(kinds) > 1:
        return [None if cell is None else str(cell) for cell in cells]
    return cells
