"""audit: evidence that no longer counts, because it was withdrawn, is old, or is from another machine."""

from typing import Annotated, Literal

import typer

from forge.cli.audit_options import AuditOptions


def invalidated(form: AuditOptions) -> None:
    """List withdrawn benchmarks, the reasons, and the kernels and claims that rested on them.

    Example: forge audit invalidated
    """
    from forge.app.audit.stale_evidence import invalidated as asked

    form.give_tables(asked)


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

    form.give_tables(lambda workspace: asked(workspace, days=days, current=current))


COMMANDS = (invalidated, stale)
"""Commands of this file, in the order of the help."""
