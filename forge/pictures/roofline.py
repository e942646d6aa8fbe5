"""Draws a roofline: a machine's highest measured rates, and the candidates below them (CACM 52(4), 2009)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forge.pictures.canvas import INK, picture, styles
from forge.pictures.values import Placed, Roofs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOF = "#41464d"
DASHES: tuple[object, object] = ("-", (0, (5, 3)))
"""Line styles of the slopes: first for the slowest path to memory, second for faster ones."""
REACH = 1.8
"""Factor between the outermost points and the ends of an axis, twice below. Chosen; labels need room there."""
APART = 1.5
"""Smallest factor between two levels that get lines of their own. Chosen; nearer labels would overlap."""


def draw_roofline(points: Sequence[Placed], roofs: Roofs, path: Path, *, title: str) -> None:
    """Draw every candidate at its arithmetic intensity and rate. Promoted ones are filled."""
    with picture(path, width=9.0, heights=(5.4,)) as (figure, (axes,)):
        left, right = _decades([point.flop_per_byte for point in points] + _ridges(roofs))
        bottom, top = _decades([point.flop_per_s for point in points] + list(roofs.flop_per_s.values()))
        axes.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top))
        series = sorted({point.series for point in points})
        for name, (colour, marker) in styles(series).items():
            _draw_series(axes, [point for point in points if point.series == name], name, colour, marker)
        axes.grid(which="major")
        axes.set_xlabel("operations per byte that must be moved; filled: promoted")
        axes.set_ylabel("operations per second")
        axes.yaxis.set_major_formatter(lambda value, _: _rate(value))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_title(title)
        if series:
            figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", alignment="left")
        figure.draw_without_rendering()
        _draw_roofs(axes, roofs, left=left, right=right)


def _draw_series(axes: Axes, own: Sequence[Placed], name: str, colour: str, marker: str) -> None:
    for promoted, face in ((False, "white"), (True, colour)):
        chosen = [point for point in own if point.promoted == promoted]
        across, up = [point.flop_per_byte for point in chosen], [point.flop_per_s for point in chosen]
        axes.plot(across, up, marker, color=colour, markerfacecolor=face, markersize=6.5, markeredgewidth=1.2)
    axes.plot([], [], marker, color=colour, markersize=6.5, label=name)


def _ridges(roofs: Roofs) -> list[float]:
    """Return the intensity at which the steepest slope meets the highest level; above it, arithmetic is the limit."""
    if not roofs.bytes_per_s or not roofs.flop_per_s:
        return []
    return [max(roofs.flop_per_s.values()) / max(roofs.bytes_per_s.values())]


def _decades(values: list[float]) -> tuple[float, float]:
    """Return the ends of an axis that shows all values, with space at both ends."""
    positive = [value for value in values if value > 0] or [1.0, 10.0]
    return min(positive) / REACH**2, max(positive) * REACH


def _draw_roofs(axes: Axes, roofs: Roofs, *, left: float, right: float) -> None:
    """Draw slopes up to the highest level, and levels from the steepest slope on, with names and rates."""
    most = max(roofs.flop_per_s.values(), default=math.inf)
    for place, (name, rate) in enumerate(sorted(roofs.bytes_per_s.items(), key=lambda one: one[1])):
        end = min(right, most / rate)
        axes.plot((left, end), (left * rate, end * rate), color=ROOF, linewidth=1.3, linestyle=DASHES[place > 0])
        _name_slope(axes, f"{name} {rate / 1e12:.3g} TB/s", left * (end / left) ** 0.55, rate, above=place > 0)
    steepest = max(roofs.bytes_per_s.values(), default=math.inf)
    for names, rate in _levels(roofs):
        axes.plot((rate / steepest, right), (rate, rate), color=ROOF, linewidth=1.1)
        text, at = f"{names} products {_rate(rate)}", (right, rate)
        axes.annotate(text, at, (-3, 3), textcoords="offset points", ha="right", fontsize=8, color=INK)


def _name_slope(axes: Axes, text: str, at: float, rate: float, *, above: bool) -> None:
    """Write text along a slope, at the angle that it has on the picture."""
    (left, low), (right, high) = axes.transData.transform([(at, at * rate), (2 * at, 2 * at * rate)])
    angle = math.degrees(math.atan2(high - low, right - left))
    axes.annotate(
        text,
        (at, at * rate),
        (0, 3 if above else -3),
        textcoords="offset points",
        rotation=angle,
        rotation_mode="anchor",
        fontsize=8,
        color=INK,
        ha="center",
        va="bottom" if above else "top",
    )


def _levels(roofs: Roofs) -> list[tuple[str, float]]:
    """Return the levels from low to high. Levels that are too close are merged, at the higher rate."""
    found: list[tuple[str, float]] = []
    for name, rate in sorted(roofs.flop_per_s.items(), key=lambda one: one[1]):
        if found and rate < found[-1][1] * APART:
            found[-1] = (f"{found[-1][0]}, {name}", rate)
        else:
            found.append((name, rate))
    return found


def _rate(flop_per_s: float) -> str:
    for size, unit in ((1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s")):
        if flop_per_s >= size:
            return f"{flop_per_s / size:.3g} {unit}"
    return f"{flop_per_s:.3g} FLOP/s"
