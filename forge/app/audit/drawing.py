"""Draws answers as pictures: what of a row is drawn, and the name of each series."""

import shutil
import sys
from pathlib import Path

from forge.app.audit.answer import Answer, Filter, named_rows, number, where
from forge.app.audit.speed import MACHINE
from forge.app.stored.tables import HasTables
from forge.pictures.roofline import draw_roofline as roofline_picture
from forge.pictures.speedups import draw_speedups as speedups_picture
from forge.pictures.terminal import roofline_text, speedups_text, timeline_text
from forge.pictures.timeline import draw_timeline
from forge.pictures.values import Bar, Moment, Placed, Roofs, Standing, legible

STANDING = """
    SELECT kernel_id, speedup, low, high, baseline FROM kernels WHERE status = 'active' AND {condition}
    ORDER BY low DESC, kernel_id
"""
"""Query for the speedups of active kernels, the largest first."""
SPEEDUPS_TITLE = "Active kernels: speedup at their own shape"
VECTOR_UNIT = "fp32"
"""Element type of the ceiling without matrix units."""
WIDTH = 100
"""Width in characters if the output is no terminal. Chosen; it fits most terminals and a page of a report."""


def standing_kernels(workspace: HasTables, *, wanted: dict[Filter, str | None]) -> list[Bar]:
    """Return the active kernels by the lower end of their speedup, each with the baseline it had to beat."""
    with workspace.publication.tables() as connection:
        condition, values = where(connection, wanted)
        rows = named_rows(connection, STANDING.format(condition=condition), values)
    return [
        Bar(
            name=legible(str(row["kernel_id"])),
            ratio=number(row["speedup"]),
            low=number(row["low"]),
            high=number(row["high"]),
            over=str(row["baseline"]),
        )
        for row in rows
    ]


def plot_speedups(bars: list[Bar], path: Path) -> None:
    """Write the kernels' speedups with their intervals to a picture."""
    speedups_picture(bars, path, title=SPEEDUPS_TITLE)


def draw_speedups(bars: list[Bar]) -> None:
    """Draw the speedups in the terminal."""
    _show(speedups_text(bars, title=SPEEDUPS_TITLE))


def plot_history(answer: Answer, path: Path) -> None:
    """Write a history to a picture."""
    title, over = _titled(answer)
    draw_timeline(moments(answer), path, title=title, over=over)


def draw_history(answer: Answer) -> None:
    """Show a history in the terminal."""
    title, over = _titled(answer)
    _show(timeline_text(moments(answer), title=title, over=over, width=_width()))


def _titled(answer: Answer) -> tuple[str, str]:
    title, _, over = answer.title.rpartition(": measurements over ")
    return legible(title), over


def moments(answer: Answer) -> list[Moment]:
    """Return one `Moment` for each measurement of a history: its time, speedup, interval and machine."""
    found = []
    for row in answer.rows:
        one = dict(zip(answer.columns, row, strict=True))
        standing: Standing = "counted" if one["verdict"] == "accepted" else "refused"
        found.append(
            Moment(
                recorded_at=str(one["recorded_at"]),
                series=legible(f"{str(one['candidate'])[:12]} at {one['shape']}"),
                time_us=number(one["candidate_median_ns"]) / 1000,
                ratio=number(one["speedup"]),
                low=number(one["low"]),
                high=number(one["high"]),
                standing="withdrawn" if one["invalidated_seq"] is not None else standing,
                machine={name: None if one[name] is None else legible(str(one[name])) for name in MACHINE},
                machine_key=str(one["perf_key"]),
            )
        )
    return found


def plot_roofline(answer: Answer, path: Path) -> None:
    """Write a roofline to a picture."""
    roofline_picture(_placed(answer), _roofs(answer), path, title=answer.title)


def draw_roofline(answer: Answer) -> None:
    """Show a roofline in the terminal."""
    _show(roofline_text(_placed(answer), _roofs(answer), title=answer.title, width=_width()))


def _placed(answer: Answer) -> list[Placed]:
    """Return the candidates to draw; operations without arithmetic have no place on a logarithmic axis."""
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    return [
        Placed(
            series=legible(str(row["op"])),
            flop_per_byte=number(row["flop_per_byte"]),
            flop_per_s=number(row["gflop_per_s"]) * 1e9,
            promoted=row["kernel_id"] is not None,
        )
        for row in rows
        if number(row["flop_per_byte"]) > 0
    ]


def _roofs(answer: Answer) -> Roofs:
    """Return the slopes of memory and cache, and the units' levels for the element types that are shown."""
    from forge.domain.device import Ceilings  # here: the models take longer than a plain answer

    found = Ceilings.model_validate(answer.more["ceilings"])
    slopes = {"memory": found.memory_bytes_per_s}
    if found.cached_bytes_per_s is not None:
        slopes["cache"] = found.cached_bytes_per_s
    wanted = {*map(str, answer.column("dtype")), VECTOR_UNIT}
    levels = {legible(name): rate for name, rate in found.flop_per_s.items() if name in wanted}
    return Roofs(name=str(answer.more["gpu"]), bytes_per_s=slopes, flop_per_s=levels)


def _width() -> int:
    return shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH


def _show(text: str) -> None:
    sys.stdout.write(f"{text}\n")
