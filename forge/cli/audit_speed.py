"""audit: speed of candidates compared with each other, with the machine's limits and with earlier measurements."""

from typing import TYPE_CHECKING, Annotated

import typer

from forge.cli.audit_options import (
    Baseline,
    DrawnAuditOptions,
    DType,
    EvidenceOptions,
    Gpu,
    Language,
    Op,
    require_baseline,
)

if TYPE_CHECKING:
    from forge.app.audit.answer import Answer, Filter
    from forge.app.stored.tables import HasTables


def leaderboard(
    form: DrawnAuditOptions,
    op: Op = None,
    gpu: Gpu = None,
    dtype: DType = None,
    baseline: Baseline = None,
) -> None:
    """Show the worst, typical and best speedup of each slot (operation, processor, type, shape).

    Example: forge audit leaderboard --gpu h200 --plot speedups.svg
    """
    from forge.app.audit.drawing import draw_speedups, plot_speedups, standing_kernels
    from forge.app.audit.speed import leaderboard as asked
    from forge.pictures.values import Bar

    wanted: dict[Filter, str | None] = {"op": op, "gpu": gpu, "dtype": dtype}
    over, kernels = require_baseline(baseline), list[Bar]()

    def ask(workspace: "HasTables") -> "Answer":
        kernels.extend(standing_kernels(workspace, wanted=wanted))
        return asked(workspace, baseline=over, wanted=wanted)

    form.give_drawn(ask, plot=lambda _, path: plot_speedups(kernels, path), draw=lambda _: draw_speedups(kernels))


def regressions(
    form: EvidenceOptions,
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
) -> None:
    """Show kernels that became slower with another driver, torch, triton or GPU, or recently on one machine.

    Example: forge audit regressions --slower 1.1
    """
    from forge.app.audit.speed import regressions as asked

    form.give_quickly(lambda workspace: asked(workspace, slower=slower, everything=everything))


def fast_p(
    form: EvidenceOptions,
    levels: Annotated[
        list[float] | None,
        typer.Argument(
            metavar="[P]...",
            help="Speedups P: tasks with a kernel more than P times as fast are counted. Default: 0, 1, 1.5, 2.",
        ),
    ] = None,
    op: Op = None,
    gpu: Gpu = None,
    dtype: DType = None,
    language: Language = None,
    baseline: Baseline = None,
) -> None:
    """Show the share of attempted tasks with a correct candidate more than P times as fast, failures included.

    Example: forge audit fast-p 1 1.2 2 --gpu h200
    """
    from forge.app.audit.speed import FAST_LEVELS
    from forge.app.audit.speed import fast_p as asked

    wanted: dict[Filter, str | None] = {"op": op, "gpu": gpu, "dtype": dtype, "language": language}
    over = require_baseline(baseline)
    form.give_quickly(lambda workspace: asked(workspace, levels=levels or FAST_LEVELS, baseline=over, wanted=wanted))


def roofline(
    form: DrawnAuditOptions,
    gpu: Annotated[str, typer.Option(help="The processor.")],
    dtype: DType = None,
    op: Op = None,
) -> None:
    """Compare each candidate's bytes and operations per second with the highest rates measured on its machine.

    Example: forge audit roofline --gpu h200 --plot roofline.png
    """
    from forge.app.audit.drawing import draw_roofline, plot_roofline
    from forge.app.audit.rooflines import roofline as asked

    form.give_drawn(
        lambda workspace: asked(workspace, gpu=gpu, wanted={"dtype": dtype, "op": op}),
        plot=plot_roofline,
        draw=draw_roofline,
    )


COMMANDS = (leaderboard, regressions, fast_p, roofline)
"""Commands of this file, in the order of the help."""
