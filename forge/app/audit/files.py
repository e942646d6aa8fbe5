"""An audit's rows for other programs: CSV that no spreadsheet executes, and Parquet."""

import csv
import io
from pathlib import Path

from forge.app.audit.answer import Answer, Cell
from forge.errors import EnvironmentUnfit, UsageError

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A text that begins so is a formula, or hides one, to a spreadsheet (OWASP, "CSV Injection")."""
EXTRA = "pip install 'tensorpath-forge[audit]'"


def as_csv(answer: Answer) -> str:
    """RFC 4180 with a header. A text that a spreadsheet would run is led by an apostrophe; numbers stay numbers."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow([_harmless(name) for name in answer.columns])
    writer.writerows([_harmless(cell) for cell in row] for row in answer.rows)
    return written.getvalue()


def _harmless(cell: Cell) -> Cell:
    """Leading spaces hide nothing: programs that trim them see what follows."""
    if isinstance(cell, str) and cell.lstrip(" ").startswith(FORMULA):
        return f"'{cell}"
    return cell


def write_parquet(answer: Answer, path: Path) -> None:
    """One table with a column for each of the answer's; raise EnvironmentUnfit where pyarrow isn't installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise EnvironmentUnfit(
            f"can't write {str(path)!r}: pyarrow isn't installed; expected the extra `audit`: {EXTRA}", hint=EXTRA
        ) from error
    named = dict(zip(answer.columns, (list(column) for column in zip(*answer.rows, strict=True)), strict=False))
    columns = {name: _alike(named.get(name, [])) for name in answer.columns}
    try:
        parquet.write_table(pyarrow.table(columns), path)
    except OSError as error:
        raise UsageError(f"can't write {str(path)!r} ({error}): expected a file in a folder that is there") from error


def _alike(cells: list[Cell]) -> list[Cell]:
    """Cells of one type, for a column has one: numbers as they are, anything mixed as text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} and float in kinds:
        return [None if cell is None else float(cell) for cell in cells]
    if len(kinds) > 1:
        return [None if cell is None else str(cell) for cell in cells]
    return cells
