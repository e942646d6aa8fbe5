"""audit: the evidence of kernels, the history of their speed, doubts, replications, and what no longer counts."""

from typing import Annotated, Literal

import typer

from forge.cli.audit_options import AuditOptions, Baseline, DrawnAuditOptions, DType, Gpu, Op, require_baseline
from forge.cli.suggest import suggest

MaybeKernel = Annotated[str | None, typer.Argument(metavar="[KERNEL]", help="A kernel's id.", show_default=False)]
MaybeCandidate = Annotated[
    str | None,
    typer.Option(
        "--candidate", help="A candidate's digest or its beginning, instead of a kernel.", show_default=False
    ),
]


def invalidated(form: AuditOptions) -> None:
    """List withdrawn benchmarks, the reasons, and the kernels and claims that rested on them.

    Example: forge audit invalidated
    """
    from forge.app.audit.stale_evidence import invalidated as asked

    form.give_quickly(asked)


def stale(
    form: AuditOptions,
    days: Annotated[int, typer.Option(help="Largest age of evidence in days; older evidence is stale.")] = 90,
    current: Annotated[
        Literal["here", "ledger", "any"],
        typer.Option(
            help="Machine to compare with: here (this one), ledger (the newest recorded one of each GPU), any (none)."
        ),
    ] = "here",
) -> None:
    """List active kernels whose evidence is old, or from another kind of machine than the current one.

    Example: forge audit stale --days 30 --current ledger
    """
    from forge.app.audit.stale_evidence import stale as asked

    form.give_quickly(lambda workspace: asked(workspace, days=days, current=current))


def doubts(form: AuditOptions) -> None:
    """List the doubts about kernels that neither a new verification nor a person has answered.

    Example: forge audit doubts
    """
    from forge.app.kernels.open_doubts import doubts as asked

    form.give_quickly(asked)


def why(
    form: AuditOptions,
    kernel_id: Annotated[str, typer.Argument(metavar="KERNEL", help="A kernel's full id.")],
) -> None:
    """Show why a kernel was promoted: each gate's observed and allowed values, down to the raw samples.

    Example: forge audit why triton_rmsnorm_h200_bf16_b16_h4096_v1
    """
    from forge.app.audit.evidence import why as asked

    if form.as_json:  # a document has every field in the model's order
        from forge.app.plain_events import OfWorkspace

        form.give(lambda workspace: asked(OfWorkspace(workspace), kernel_id))
    else:
        form.give_quickly(lambda workspace: asked(workspace, kernel_id))
    suggest("next", f"forge ledger prove {kernel_id}")


def history(
    form: DrawnAuditOptions,
    kernel_id: MaybeKernel = None,
    candidate: MaybeCandidate = None,
    op: Op = None,
    gpu: Gpu = None,
    dtype: DType = None,
    baseline: Baseline = None,
    limit: Annotated[
        int, typer.Option(help="Show only this many of the newest measurements.", min=1, max=1_000_000)
    ] = 1000,
) -> None:
    """Show the measured speed of a kernel, a candidate or an operation over time, and the machines.

    Example: forge audit history --op rmsnorm --gpu h200 --plot history.svg
    """
    from forge.app.audit.drawing import draw_history, plot_history
    from forge.app.audit.histories import history as asked

    over = require_baseline(baseline)
    form.give_drawn(
        lambda workspace: asked(
            workspace,
            kernel=kernel_id,
            candidate=candidate,
            op=op,
            gpu=gpu,
            dtype=dtype,
            baseline=over,
            limit=limit,
        ),
        plot=plot_history,
        draw=draw_history,
    )


def replication(form: AuditOptions) -> None:
    """List second measurements of kernels beside the first, and the share that held.

    Example: forge audit replication
    """
    from forge.app.audit.replication import replication as asked

    form.give_quickly(asked)


COMMANDS = (invalidated, stale, doubts, why, history, replication)
"""Commands of this file, in the order of the help."""
