"""Draws the same pictures with a terminal's characters, without colours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from forge.errors import EnvironmentUnfit
from forge.pictures.canvas import EXTRA
from forge.pictures.values import Bar, Moment, Placed, Roofs, legible, machine_changes

if TYPE_CHECKING:
    from types import ModuleType

NAME_WIDTH = 54
"""Width of a name in a line of speedups, in characters. Chosen; with the axis and the figures a line has about 120
characters."""
LINE_WIDTH = 48
"""Width of the axis in a line of speedups, in characters. Chosen; with the name and the figures a line has about 120
characters."""
HEIGHT = 24
"""Height of a plot in lines: that of a usual terminal."""
PREFIXES = ("", "k", "M", "G", "T", "P")
"""Letters for thousand, million and so on."""
LETTERS = "oxabcdefghijklmnpqrstuvwyz"
"""Letters that mark the series, one each, so that no colours are needed."""


def speedups_text(bars: Sequence[Bar], *, title: str) -> str:
    """Return one line for each bar on a logarithmic axis: `|` is 1, `o` the speedup, `-` its interval."""
    low = min([0.9, *(bar.low for bar in bars)])
    high = max([1.1, *(bar.high for bar in bars)])

    def column(ratio: float) -> int:
        return round(math.log(ratio / low) / math.log(high / low) * (LINE_WIDTH - 1))

    lines = [title, ""]
    for bar in bars:
        cells = [" "] * LINE_WIDTH
        cells[column(1)] = "|"
        for place in range(column(bar.low), column(bar.high) + 1):
            cells[place] = "-"
        cells[column(bar.ratio)] = "o"
        figures = f"{bar.ratio:6.2f}x over {bar.over}"
        lines.append(f"{legible(bar.name, NAME_WIDTH):<{NAME_WIDTH}} {''.join(cells)} {figures}")
    return "\n".join([*lines, "", f"{'':<{NAME_WIDTH}} {low:.2f}x {'to':^{LINE_WIDTH - 12}} {high:.2f}x"])


def timeline_text(moments: Sequence[Moment], *, title: str, over: str, width: int) -> str:
    """Return a plot of speedups in order, then the series' names and the changes of the machine.

    `width` is in characters.
    """
    plot = _plot()
    names = sorted({moment.series for moment in moments})
    legend = dict(zip(names, cycle(LETTERS), strict=False))
    for name, letter in legend.items():
        own = [(place, moment.ratio) for place, moment in enumerate(moments, start=1) if moment.series == name]
        _scatter(plot, [place for place, _ in own], [ratio for _, ratio in own], letter)
    changes = [f"before measurement {place + 1}: {what}" for place, what in machine_changes(moments)]
    axes = f"across: measurements in order; up: times as fast as {over}"
    return _built(plot, title, width, [axes, *_explained(legend), *changes])


def roofline_text(points: Sequence[Placed], roofs: Roofs, *, title: str, width: int) -> str:
    """Return a plot of candidates below the rooflines, both axes logarithmic with plain numbers at their ticks.

    `width` is in characters.
    """
    plot = _plot()
    left = math.log10(min([point.flop_per_byte for point in points], default=0.1) / 2)
    most = max(roofs.flop_per_s.values(), default=1e15)
    for rate in roofs.bytes_per_s.values():
        right = math.log10(most / rate)
        slope = plot.figure.signal((left, right), (left + math.log10(rate), right + math.log10(rate)), marker=".")
        slope.lines()
        plot.figure.draw(slope)
    legend = dict(zip(sorted({point.series for point in points}), cycle(LETTERS), strict=False))
    for name, letter in legend.items():
        own = [point for point in points if point.series == name]
        across = [math.log10(point.flop_per_byte) for point in own]
        _scatter(plot, across, [math.log10(point.flop_per_s) for point in own], letter)
    lowest = min([point.flop_per_s for point in points], default=most)
    _tick(plot, "x", left, math.log10(most / min(roofs.bytes_per_s.values())))
    _tick(plot, "y", math.log10(lowest), math.log10(most))
    slopes = ", ".join(f"{name} {rate / 1e12:.3g} TB/s" for name, rate in roofs.bytes_per_s.items())
    axes = f"across: operations per byte, up: operations per second, both logarithmic; dots: {slopes}"
    return _built(plot, title, width, [axes, *_explained(legend)])


def _tick(plot: ModuleType, axis: str, low: float, high: float) -> None:
    """Set ticks at the powers of ten between two logarithms, and label them with plain numbers."""
    powers = list(range(math.ceil(low), math.floor(high) + 1))
    plot.figure.ruler(axis).ticks(powers, [_plain_power(power) for power in powers])


def _plain_power(power: int) -> str:
    """Return 10 to a power as people read it: 0.1, 100, 10 G, 1 T."""
    thousands = min(max(power, 0) // 3, len(PREFIXES) - 1)
    return f"{10 ** (power - 3 * thousands):g} {PREFIXES[thousands]}".rstrip()


def _plot() -> ModuleType:
    try:
        import plotext
    except ImportError as error:
        raise EnvironmentUnfit(f"plotext isn't installed: expected the extra `audit`: {EXTRA}", hint=EXTRA) from error
    module: ModuleType = plotext
    module.figure.clear()
    return module


def _scatter(plot: ModuleType, across: Sequence[float], up: Sequence[float], letter: str) -> None:
    plot.figure.draw(plot.figure.signal(list(across), list(up), marker=letter))


def _explained(legend: Mapping[str, str]) -> list[str]:
    return [f"{letter}: {name}" for name, letter in legend.items()]


def _built(plot: ModuleType, title: str, width: int, below: Sequence[str]) -> str:
    """Return the plot without colours or escape sequences, and the lines that explain it."""
    plot.figure.title(title)
    plot.figure.plot_size(width, HEIGHT)
    drawn = str(plot.uncolorize(str(plot.figure.build())))
    return "\n".join([*(line.rstrip() for line in drawn.splitlines()), *below])
