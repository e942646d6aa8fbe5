"""bench --replicate and audit replication: what a second measurement of a kernel says of the first."""

from pathlib import Path
from typing import Any

import typer

from forge.cli.opening import open_workspace
from forge.cli.output import emit_json, emit_table
from forge.cli.progress import reporting
from forge.cli.signing_notes import say_if_unsigned
from forge.cli.suggest import suggest

Answer = dict[str, Any]  # Any: a JSON document, taken apart for people
COLUMNS = ("regime", "over", "first", "second", "the kernel's own time", "sessions may differ by")


def replicate(name: str, home: Path | None, *, as_json: bool) -> None:
    """Measure a promoted kernel again, record the outcome and print it; exit with 1 unless it held."""
    from forge.app.phases.replication import replicate_kernel

    with open_workspace(home) as workspace, reporting("replicate") as progress:
        answer = replicate_kernel(workspace, name, progress=progress)
    if as_json:
        emit_json(answer)
    else:
        _show(answer)
    say_if_unsigned(answer)
    held = answer["outcome"] == "held"
    suggest("next" if held else "try", "forge audit replication")
    if not held:
        raise typer.Exit(1)


def _show(answer: Answer) -> None:
    """Print the outcome, and the two measurements side by side."""
    reason = answer["reason"]
    said = f"{reason['code']}: {reason['message']}" if reason else ""
    emit_table("replicate", ("outcome", "kernel", "why"), [(answer["outcome"], answer["kernel_id"], said)])
    rows = [
        (one["regime"], one["baseline"], _interval(one["first"]), _interval(one["second"]), _own(one), _spread(one))
        for one in answer["comparisons"]
    ]
    if rows:
        emit_table("", COLUMNS, rows)


def _interval(found: Answer) -> str:
    return f"{found['ratio']:.3f}x ({found['low']:.3f} to {found['high']:.3f}x)"


def _own(one: Answer) -> str:
    return f"{one['kernel_ratio']:.3f} times the first"


def _spread(one: Answer) -> str:
    known = one["replications"]
    return f"{one['session_spread']:.1%}, {f'from {known} replications' if known else 'the control band'}"
