"""Draws speedups with their intervals, one line each, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forge.pictures.canvas import FAINT, MARK, picture, styles, wrapped
from forge.pictures.values import Bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW_INCHES = 0.3
"""Height of one line of the picture. Chosen; a line of text of 10 points is 0.14 inches high."""
FRAME_INCHES = 1.7
"""Height of title and axis together. Chosen, so that neither is cut off."""
LEGEND_ROWS = 1.0
"""Height of one line of the legend, in lines of the picture: it stands below the bars, over none of them."""
ROOM_FOR_FIGURES = 0.56
"""Space for figures beyond the longest bar, as a share of the bar's part of the axis: 1.9 inches of AXIS_INCHES."""
AXIS_INCHES = 5.4
"""Width of the axis. Names stand beside it, so that long names don't take its space."""
INCHES_PER_LETTER = 0.08
"""Width of a name's letter: names are set in 8.5 points, of which the widest usual letters take 0.65."""
MOST_BARS = 200
"""Largest number of bars. More take minutes to draw, and no longer fit into a PNG of 2^16 pixels a side."""
OVER = ("eager", "compile", "vendor", "promoted")
"""Baselines that keep their colours in all pictures, in the order of the legend. Others follow by name."""
WIDE = 4.0
"""Largest speedup on an axis with the ticks of NARROW_STEPS; beyond it, WIDE_STEPS."""
WIDE_STEPS = (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Speedups that may be marked on an axis that ends beyond WIDE."""
NARROW_STEPS = (0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4)
"""Speedups that may be marked on an axis that ends at WIDE or before."""


def draw_speedups(bars: Sequence[Bar], path: Path, *, title: str) -> None:
    """Draw `bars` from the top, in their order, at most `MOST_BARS` of them; the title says if some are left out."""
    if len(bars) > MOST_BARS:
        title = f"{title} (the first {MOST_BARS} of {len(bars)})"
        bars = bars[:MOST_BARS]
    highest = max((bar.high for bar in bars), default=2.0)
    lowest = min(0.92, *(bar.low / 1.05 for bar in bars), 0.92)
    legend_rows = LEGEND_ROWS * len({bar.over for bar in bars})
    height = FRAME_INCHES + ROW_INCHES * (max(1, len(bars)) + legend_rows)
    width = AXIS_INCHES + INCHES_PER_LETTER * max((len(bar.name) for bar in bars), default=0)
    with picture(path, width=width, heights=(height,)) as (_, (axes,)):
        axes.set_xscale("log")
        axes.set_xlim(lowest, highest * (highest / lowest) ** ROOM_FOR_FIGURES)
        for over, (colour, _) in styles([*OVER, *sorted({bar.over for bar in bars} - set(OVER))]).items():
            _draw_all(axes, bars, over, colour)
        axes.axvline(1, color=MARK, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize=8.5)
        axes.set_ylim(max(len(bars), 1) - 0.5 + legend_rows, -0.5)
        axes.tick_params(axis="y", length=0)
        _set_ticks(axes)
        axes.grid(axis="x")
        axes.set_xlabel(
            "times as fast as the baseline\ndot: ratio; line: its 95 % interval; ordered by the lower end"
        )
        axes.set_title(wrapped(title, AXIS_INCHES))
        if bars:
            axes.legend(loc="lower right")


def _draw_all(axes: Axes, bars: Sequence[Bar], over: str, colour: str) -> None:
    """Draw the bars over one baseline, and name it in the legend if there are any."""
    own = [(place, bar) for place, bar in enumerate(bars) if bar.over == over]
    for place, bar in own:
        axes.plot((1, bar.ratio), (place, place), color=colour, alpha=0.2, linewidth=5, solid_capstyle="butt")
        reach = ((bar.ratio - bar.low,), (bar.high - bar.ratio,))
        axes.errorbar(bar.ratio, place, xerr=reach, fmt="o", color=colour, markersize=4.5, capsize=3, linewidth=1.4)
        figures = f"{bar.ratio:.2f}x  ({bar.low:.2f} to {bar.high:.2f})"
        at = (max(1.0, bar.high), place)
        axes.annotate(figures, at, (8, 0), textcoords="offset points", va="center", fontsize=8, color=FAINT)
    if own:
        axes.plot([], [], "o", color=colour, markersize=4.5, label=f"over {over}")


def _set_ticks(axes: Axes) -> None:
    """Set ticks at plain numbers instead of powers of ten."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    low, high = axes.get_xlim()
    shown = [step for step in (WIDE_STEPS if high > WIDE else NARROW_STEPS) if low <= step <= high]
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{step:g}x" for step in shown]))
    axes.xaxis.set_minor_locator(NullLocator())
