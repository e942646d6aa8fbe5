"""An audit's rows for other programs: CSV that no spreadsheet executes, and Parquet."""

import csv
import io
import unicodedata
from pathlib import Path

from forge.app.audit.answer import Answer, Cell
from forge.errors import EnvironmentUnfit
from forge.pictures.replace import replace_file, require_suffix

FORMULA = ("=", "+", "-", "@", "\t", "\n")
"""A text that begins so is a formula, or hides one, to a spreadsheet (OWASP, "CSV Injection")."""
KEPT_CONTROLS = "\t\n"
PARQUET = (".parquet",)
EXTRA = "pip install 'tensorpath-forge[audit]'"


def as_csv(answer: Answer) -> str:
    """RFC 4180 with a header. A text that a spreadsheet would run is led by an apostrophe; numbers stay numbers."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow([_harmless(name) for name in answer.columns])
    writer.writerows([_harmless(cell) for cell in row] for row in answer.rows)
    return written.getvalue()


def _harmless(cell: Cell) -> Cell:
    """Text that neither a spreadsheet nor a terminal obeys; programs that need it as it is read JSON or Parquet.

    Leading spaces hide nothing: programs that trim them see what follows. Some take the wide forms of the signs for
    the signs (U+FF1D and others), and so does this.
    """
    if not isinstance(cell, str):
        return cell
    plain = "".join(one if one in KEPT_CONTROLS or not _commands(one) else repr(one)[1:-1] for one in cell)
    if unicodedata.normalize("NFKC", plain).lstrip(" ").startswith(FORMULA):
        return f"'{plain}"
    return plain


def _commands(sign: str) -> bool:
    """Whether a terminal may obey it, or can't write it: controls, what turns the direction of text, half a pair."""
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs")


def write_parquet(answer: Answer, path: Path) -> None:
    """One table with a column for each of the answer's; raise EnvironmentUnfit where pyarrow isn't installed.

    Raises UsageError for a name that doesn't end in `.parquet`, or where no file can be.
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
    """Cells of one type, for a column has one: numbers as they are, anything mixed as text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} and float in kinds:
        return [None if cell is None else float(cell) for cell in cells]
    if len(kinds) > 1:
        return [None if cell is None else str(cell) for cell in cells]
    return cells
