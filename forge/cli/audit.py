"""audit: the evidence of a kernel, the history of its speed, doubts and replications."""

from typing import Annotated

import typer

from forge.cli import audit_authors, audit_speed, audit_sql, audit_stale
from forge.cli.audit_options import AuditOptions, Baseline, DrawnAuditOptions, DType, Gpu, Op, require_baseline
from forge.cli.option_groups import with_groups
from forge.cli.suggest import suggest

app = typer.Typer(
    help="Answer questions about the recorded history. These commands record nothing.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
MaybeKernel = Annotated[str | None, typer.Argument(metavar="[KERNEL]", help="A kernel's id.", show_default=False)]
MaybeCandidate = Annotated[
    str | None,
    typer.Option(
        "--candidate", help="A candidate's digest or its beginning, instead of a kernel.", show_default=False
    ),
]
for command in (*audit_speed.COMMANDS, *audit_authors.COMMANDS, *audit_sql.COMMANDS, *audit_stale.COMMANDS):
    app.command()(with_groups(command))


@app.command()
@with_groups
def doubts(form: AuditOptions) -> None:
    """List the doubts about kernels that neither a new verification nor a person has answered.

    Example: forge audit doubts
    """
    from forge.app.doubts import doubts as asked

    form.give(asked)


@app.command()
@with_groups
def why(
    form: AuditOptions,
    kernel_id: Annotated[str, typer.Argument(metavar="KERNEL", help="A kernel's full id.")],
) -> None:
    """Show why a kernel was promoted: each gate's observed and allowed values, down to the raw samples.

    Example: forge audit why triton_rmsnorm_h200_bf16_b16_h4096_v1
    """
    from forge.app.audit.evidence import why as asked

    form.give(lambda workspace: asked(workspace, kernel_id))
    suggest("next", f"forge ledger prove {kernel_id}")


@app.command()
@with_groups
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


@app.command()
@with_groups
def replication(form: AuditOptions) -> None:
    """List second measurements of kernels beside the first, and the share that held.

    Example: forge audit replication
    """
    from forge.app.audit.replication import replication as asked

    form.give(asked)
