"""Draws speedups with their intervals, one line each, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forge.pictures.canvas import COLOURS, FAINT, MARK, picture
from forge.pictures.values import Bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW_INCHES = 0.3
"""Height of one line of the picture."""
FRAME_INCHES = 1.5
"""Height of title and axis together."""
ROOM_FOR_FIGURES = 0.36
"""Space for figures beyond the longest bar, as a share of the axis' length."""
MOST_BARS = 200
"""Largest number of bars. More take minutes to draw, and no longer fit into a PNG of 2^16 pixels a side."""
OVER = ("eager", "compile", "vendor")
"""Baselines that have colours of their own, in the order of the legend."""
WIDE = 4.0
"""Largest speedup on an axis with the ticks of NARROW_STEPS; beyond it, WIDE_STEPS."""
WIDE_STEPS = (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
NARROW_STEPS = (0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4)


def draw_speedups(bars: Sequence[Bar], path: Path, *, title: str) -> None:
    """Draw `bars` from the top, in their order, at most `MOST_BARS` of them; the title says if some are left out."""
    if len(bars) > MOST_BARS:
        title = f"{title} (the first {MOST_BARS} of {len(bars)})"
        bars = bars[:MOST_BARS]
    highest = max((bar.high for bar in bars), default=2.0)
    lowest = min(0.92, *(bar.low / 1.05 for bar in bars), 0.92)
    height = FRAME_INCHES + ROW_INCHES * max(1, len(bars))
    with picture(path, width=9.0, heights=(height,)) as (_, (axes,)):
        axes.set_xscale("log")
        axes.set_xlim(lowest, highest * (highest / lowest) ** ROOM_FOR_FIGURES)
        colours = {over: _draw_all(axes, bars, over, colour) for over, colour in zip(OVER, COLOURS, strict=False)}
        axes.axvline(1, color=MARK, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize=8.5)
        axes.set_ylim(max(len(bars), 1) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        _set_ticks(axes)
        axes.grid(axis="x")
        axes.set_xlabel("times as fast as the baseline, with the 95 % interval")
        axes.set_title(title)
        if any(colours.values()):
            axes.legend(loc="lower right")


def _draw_all(axes: Axes, bars: Sequence[Bar], over: str, colour: str) -> int:
    """Draw the bars over one baseline and return their number."""
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
    return len(own)


def _set_ticks(axes: Axes) -> None:
    """Set ticks at plain numbers instead of powers of ten."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    low, high = axes.get_xlim()
    shown = [step for step in (WIDE_STEPS if high > WIDE else NARROW_STEPS) if low <= step <= high]
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{step:g}x" for step in shown]))
    axes.xaxis.set_minor_locator(NullLocator())
