"""audit: speed of candidates compared with each other, with the machine's limits and with earlier measurements."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from forge.cli.answering import (
    Baseline,
    Csv,
    Draw,
    DType,
    Gpu,
    Language,
    Op,
    Parquet,
    Plot,
    emit_answer,
    require_baseline,
)
from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json

if TYPE_CHECKING:
    from forge.app.audit.answer import Filter

LEVELS = (0.0, 1.0, 1.5, 2.0)
"""Speedups P for which `fast-p` counts tasks by default; 0 counts every correct candidate."""


def register(app: typer.Typer) -> None:
    """Add these commands to the noun."""
    app.command()(leaderboard)
    app.command()(regressions)
    app.command("fast-p")(fast_p)
    app.command()(roofline)


def leaderboard(
    op: Op = None,
    gpu: Gpu = None,
    dtype: DType = None,
    baseline: Baseline = None,
    plot: Plot = None,
    draw: Draw = False,
    home: Home = None,
    as_json: Json = False,
    as_csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Show the worst, typical and best speedup of each slot (operation, processor, type, shape).

    Example: forge audit leaderboard --gpu h200 --plot speedups.svg
    """
    from forge.app.audit.drawing import draw_speedups, plot_speedups, standing_kernels
    from forge.app.audit.speed import leaderboard as asked

    wanted: dict[Filter, str | None] = {"op": op, "gpu": gpu, "dtype": dtype}
    with open_workspace(home) as workspace:
        answer = asked(workspace, baseline=require_baseline(baseline), wanted=wanted)
        kernels = standing_kernels(workspace, wanted=wanted)
    pictures = (plot, partial(plot_speedups, kernels)), (draw, partial(draw_speedups, kernels))
    emit_answer(answer, as_json=as_json, as_csv=as_csv, parquet=parquet, plot=pictures[0], draw=pictures[1])


def regressions(
    slower: Annotated[
        float,
        typer.Option(help="On one machine, a kernel is slower if later time / earlier time exceeds this.", min=1.0),
    ] = 1.05,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Also show kernels that became faster, and differences between machines that may be noise."
        ),
    ] = False,
    home: Home = None,
    as_json: Json = False,
    as_csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Show kernels that became slower with another driver, torch, triton or GPU, or recently on one machine.

    Example: forge audit regressions --slower 1.1
    """
    from forge.app.audit.speed import regressions as asked

    with open_workspace(home) as workspace:
        answer = asked(workspace, slower=slower, everything=everything)
    emit_answer(answer, as_json=as_json, as_csv=as_csv, parquet=parquet)


def fast_p(
    levels: Annotated[
        list[float] | None,
        typer.Argument(metavar="[P]...", help="Speedups to count tasks above. Default: 0, 1, 1.5 and 2."),
    ] = None,
    op: Op = None,
    gpu: Gpu = None,
    dtype: DType = None,
    language: Language = None,
    baseline: Baseline = None,
    home: Home = None,
    as_json: Json = False,
    as_csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Show the share of attempted tasks with a correct candidate more than P times as fast, failures included.

    Example: forge audit fast-p 1 1.2 2 --gpu h200
    """
    from forge.app.audit.speed import fast_p as asked

    wanted: dict[Filter, str | None] = {"op": op, "gpu": gpu, "dtype": dtype, "language": language}
    with open_workspace(home) as workspace:
        answer = asked(workspace, levels=levels or LEVELS, baseline=require_baseline(baseline), wanted=wanted)
    emit_answer(answer, as_json=as_json, as_csv=as_csv, parquet=parquet)


def roofline(
    gpu: Annotated[str, typer.Option(help="The processor.")],
    dtype: DType = None,
    op: Op = None,
    plot: Plot = None,
    draw: Draw = False,
    home: Home = None,
    as_json: Json = False,
    as_csv: Csv = False,
    parquet: Parquet = None,
) -> None:
    """Compare each candidate's bytes and operations per second with the highest rates measured on its machine.

    Example: forge audit roofline --gpu h200 --plot roofline.png
    """
    from forge.app.audit.drawing import draw_roofline, plot_roofline
    from forge.app.audit.rooflines import roofline as asked

    with open_workspace(home) as workspace:
        answer = asked(workspace, gpu=gpu, wanted={"dtype": dtype, "op": op})
    pictures = (plot, partial(plot_roofline, answer)), (draw, partial(draw_roofline, answer))
    emit_answer(answer, as_json=as_json, as_csv=as_csv, parquet=parquet, plot=pictures[0], draw=pictures[1])
