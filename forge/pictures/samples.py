"""Draws raw samples: each measured time of a call, by process pair, the candidate beside its baselines."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from forge.pictures.canvas import INK, picture, styles, wrapped
from forge.pictures.values import legible

WIDTH_INCHES, HEIGHT_INCHES = 9.0, 3.6
"""Size of the picture. Chosen; a page of A4 is 8.3 inches wide."""
SPREAD = 0.8
"""Share of a process pair's width that its samples are spread over."""
WIDE = 20.0
"""Ratio of the longest to the shortest time from which the axis is logarithmic. Chosen; a linear one then presses the
shorter times together."""


def draw_samples(times_us: Mapping[str, Sequence[Sequence[float]]], path: Path, *, title: str) -> None:
    """Draw the times of each side, a list for each process pair, with a line at the pair's median."""
    looks = styles(sorted(times_us))
    with picture(path, width=WIDTH_INCHES, heights=(HEIGHT_INCHES,)) as (figure, (axes,)):
        for place, name in enumerate(sorted(times_us)):
            colour, marker = looks[name]
            left = (place + 0.5) / len(times_us) - 0.5
            for pair, rounds in enumerate(times_us[name], 1):
                across = _across(pair + left * SPREAD, len(rounds), SPREAD / len(times_us))
                label = legible(name) if pair == 1 else None
                axes.plot(across, rounds, marker, color=colour, markersize=3, alpha=0.7, label=label)
                middle = sorted(rounds)[len(rounds) // 2]
                axes.hlines(middle, across[0], across[-1], color=INK, linewidth=1)
        every = [one for pairs in times_us.values() for rounds in pairs for one in rounds]
        if min(every) > 0 and max(every) / min(every) >= WIDE:
            axes.set_yscale("log")
        axes.grid(axis="y")
        axes.set_title(wrapped(title, WIDTH_INCHES - 1))
        axes.set_xticks(range(1, max(map(len, times_us.values())) + 1))
        axes.set_xlabel("process pair; within it the rounds in order; line: the median")
        axes.set_ylabel("time of a call, µs")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=4)


def _across(middle: float, count: int, width: float) -> list[float]:
    """Return evenly spaced places around a middle, for rounds in their order."""
    step = width * 0.8 / max(1, count - 1)
    return [middle + (place - (count - 1) / 2) * step for place in range(count)]
