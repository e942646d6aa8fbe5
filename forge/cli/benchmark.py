"""Benchmarks: the withdrawal of a measurement that turns out to be wrong."""

from typing import Annotated, Any

import typer

from forge.cli.confirming import DryRun, Yes, require_yes, say_dry_run
from forge.cli.opening import open_workspace
from forge.cli.options import MOST_EVENTS, Home, Json
from forge.cli.output import emit_json, emit_table, say
from forge.cli.signing_notes import say_if_unsigned
from forge.cli.suggest import suggest

app = typer.Typer(help="Benchmarks: withdraw recorded measurements.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def benchmarks() -> None:
    """Benchmarks: withdraw recorded measurements."""


@app.command()
def invalidate(
    seq: Annotated[
        int,
        typer.Argument(help="Number of the BenchmarkRecorded event in forge kernel history.", min=1, max=MOST_EVENTS),
    ],
    reason: Annotated[str, typer.Option(help="Reason for the withdrawal. It is recorded with your name.")],
    yes: Yes = False,
    dry_run: DryRun = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Withdraw a benchmark. No lookup returns a kernel that rests on it any more.

    Example: forge benchmark invalidate 42 --reason "another job held the GPU"
    """
    from forge.app.kernels import decisions

    require_yes(f"Withdraw the benchmark of event {seq}, and all that rests on it?", yes=yes or dry_run)
    with open_workspace(home) as workspace:
        decided: dict[str, Any] = decisions.invalidate(  # Any: a JSON document
            workspace, seq, reason=reason, dry_run=dry_run
        )
    stood = decided["kernels"]
    if as_json:
        emit_json(decided)
    else:
        rows = [(name, value) for name, value in decided.items() if name != "kernels" and value is not None]
        emit_table("Would be invalidated" if dry_run else "Invalidated", ("", ""), rows)
        emit_table("Kernels that stood on it", ("kernel", "status"), [(k["kernel_id"], k["status"]) for k in stood])
    if dry_run:
        say_dry_run()
        return
    say_if_unsigned(decided)
    open_cases = [one["kernel_id"] for one in stood if one["status"] != "revoked"]
    if open_cases:
        command = f"forge kernel revoke {open_cases[0]} --severity evidence_invalid --reason TEXT"
        say(f"next, to take it back for good: {command}")
    else:
        suggest("next", "forge kernel list")
