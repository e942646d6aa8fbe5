"""Sets up and writes every picture in one style, without clock, random ids or markup in texts."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from forge.errors import EnvironmentUnfit
from forge.pictures.replace import replace_file, require_suffix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".svg", ".png")
INK, FAINT, GRID, MARK = "#1f2328", "#6e7781", "#e4e7eb", "#b42318"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f5fb3", "#8c6d31")
"""Colours of series: Okabe and Ito's palette for colour-blind readers (jfly.uni-koeln.de/color, 2008), and two
more."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
EXTRA = "pip install 'tensorpath-forge[audit]'"
"""Command that installs what pictures and Parquet files need."""
SETTINGS: dict[str, object] = {
    "svg.hashsalt": "forge",
    "svg.fonttype": "path",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12.0,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
LETTERS_PER_INCH = 8.0
"""Letters of a title in an inch: bold, 11.5 points, of which a letter takes 0.7 on average."""
DPI = 144
"""Pixels of a PNG for each inch: twice those of a usual screen, so that text stays sharp."""


@contextmanager
def picture(path: Path, *, width: float, heights: tuple[float, ...]) -> Iterator[tuple[Figure, list[Axes]]]:
    """Yield panels one above the other to draw on, sizes in inches, and write them to `path` at the end.

    Raises UsageError if the name doesn't end in a known format or the file can't be written. Raises EnvironmentUnfit
    if matplotlib isn't installed.
    """
    require_suffix(path, FORMATS)
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EnvironmentUnfit(
            f"can't draw {str(path)!r}: matplotlib isn't installed; expected the extra `audit`: {EXTRA}", hint=EXTRA
        ) from error
    # matplotlib's setting names are a closed list that differs by version
    with rc_context(SETTINGS):  # type: ignore[arg-type]
        figure = Figure(figsize=(width, sum(heights)), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=list(heights))
        yield figure, [row[0] for row in grid]
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}
        drawn = io.BytesIO()
        figure.savefig(drawn, format=path.suffix.lower()[1:], dpi=DPI, metadata=metadata, facecolor="white")
        replace_file(path, drawn.getvalue(), suffixes=FORMATS)


def wrapped(title: str, inches: float) -> str:
    """Return a title in lines that fit into a picture's width."""
    return textwrap.fill(title, max(20, int(inches * LETTERS_PER_INCH)))


def styles(series: list[str]) -> dict[str, tuple[str, str]]:
    """Return a colour and a marker for each series; the same list gives the same result."""
    return {
        name: (COLOURS[place % len(COLOURS)], MARKERS[(place + place // len(COLOURS)) % len(MARKERS)])
        for place, name in enumerate(series)
    }
