"""Draws a history: speedup with its interval at the top, time below, and changes of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forge.pictures.canvas import FAINT, MARK, picture, styles, wrapped
from forge.pictures.values import Moment, machine_changes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_INCHES = 9.0
"""Width of the picture. Chosen; a page of A4 is 8.3 inches wide."""
AXIS_LABEL_INCHES = 0.8
"""Width in inches left of the axis. The title begins at the axis, so it wraps at the picture's width without this."""
MOST_NAMED = 8
"""Largest number of series in the legend. Chosen; more names take more room than the lines."""
MOST_DATES = 9
"""Largest number of dates on the axis, so that they don't overlap."""


def draw_timeline(moments: Sequence[Moment], path: Path, *, title: str, over: str) -> None:
    """Draw `moments` in their order, evenly spaced. Refused ones are hollow, withdrawn ones crossed."""
    series = sorted({moment.series for moment in moments})
    looks = styles(series)
    with picture(path, width=WIDTH_INCHES, heights=(3.3, 2.0)) as (figure, (above, below)):
        for name in series:
            _draw_series(above, below, name, moments, looks[name])
        above.axhline(1, color=MARK, linewidth=1, linestyle=(0, (4, 3)))
        for axes in (above, below):
            axes.grid(axis="y")
            axes.margins(x=0.04, y=0.18)
        for place, what in machine_changes(moments):
            _draw_change(above, below, place, what)
        above.set_title(wrapped(f"{title}: times as fast as {over}", WIDTH_INCHES - AXIS_LABEL_INCHES))
        above.set_ylabel("speedup, 95 % interval")
        below.set_ylabel("time, µs")
        _set_scale(below, [moment.time_us for moment in moments])
        shown = range(0, len(moments), max(1, -(-len(moments) // MOST_DATES)))
        dates = [moments[place].recorded_at[:16].replace("T", "\n") for place in shown]
        below.set_xticks(list(shown), dates, fontsize=8)
        below.set_xlabel("recorded at (UTC), in order, not to scale; hollow: refused, crossed: withdrawn")
        if 1 <= len(series) <= MOST_NAMED:
            figure.legend(*above.get_legend_handles_labels(), loc="outside lower left", ncols=3)


def _draw_change(above: Axes, below: Axes, place: int, what: str) -> None:
    """Draw a line before the first measurement on another kind of machine, and name the difference."""
    for axes in (above, below):
        axes.axvline(place - 0.5, color=FAINT, linewidth=1, linestyle=(0, (1, 2)))
    at = (place - 0.5, 1)
    where, at = ("data", "axes fraction"), (place - 0.5, 1)
    above.annotate(what, at, (3, -2), where, "offset points", va="top", fontsize=8, color=FAINT)


def _draw_series(above: Axes, below: Axes, name: str, moments: Sequence[Moment], look: tuple[str, str]) -> None:
    """Draw one series; a line joins the measurements that count."""
    colour, marker = look
    own = [(place, moment) for place, moment in enumerate(moments) if moment.series == name]
    counted = [(place, moment) for place, moment in own if moment.standing == "counted"]
    places = [place for place, _ in counted]
    above.plot(places, [one.ratio for _, one in counted], color=colour, alpha=0.35, linewidth=1)
    below.plot(places, [one.time_us for _, one in counted], color=colour, alpha=0.35, linewidth=1)
    for place, one in own:
        face = colour if one.standing == "counted" else "white"
        drawn = "x" if one.standing == "withdrawn" else marker
        above.errorbar(
            place,
            one.ratio,
            yerr=((one.ratio - one.low,), (one.high - one.ratio,)),
            fmt=drawn,
            color=colour,
            markerfacecolor=face,
            markersize=5,
            capsize=2.5,
            linewidth=1.2,
        )
        below.plot(place, one.time_us, drawn, color=colour, markerfacecolor=face, markersize=4.5)
    above.plot([], [], marker, color=colour, markersize=5, label=name)


def _set_scale(axes: Axes, values: list[float]) -> None:
    """Set a logarithmic scale if values differ by more than a factor of five, with plain numbers in any case."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if values and max(values) > 5 * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
