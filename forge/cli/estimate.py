"""bench --quick: an estimate, which no decision reads."""

from pathlib import Path
from typing import Any

import typer

from forge.cli.opening import open_workspace
from forge.cli.output import emit_json, emit_table, number_text, say
from forge.cli.progress import reporting
from forge.cli.suggest import suggest

Document = dict[str, Any]  # Any: a JSON document


def show_estimate(run: str, home: Path | None, *, as_json: bool) -> None:
    """Print an estimate of a run's speedups; exit with 1 if the candidate failed while it was timed."""
    from forge.app.phases.speed_estimates import estimate_of

    with open_workspace(home) as workspace, reporting("estimate") as progress:
        state = workspace.find_run(run)
        found: Document = estimate_of(workspace, state, progress=progress)
    if as_json:
        emit_json(found)
    else:
        _show(found)
    if found["failed"] is not None:
        suggest("try", f"forge explain {found['failed']['code']}")
        raise typer.Exit(1)
    suggest("next", f"forge bench {found['run_id']}")


def _show(found: Document) -> None:
    if found["failed"] is not None:
        why = (found["failed"]["code"], found["failed"]["message"])
        emit_table("Estimate: the candidate failed while it was timed", ("code", "why"), [why])
        return
    title = "Estimate: it decides nothing"
    rows = [
        (
            one["baseline"],
            number_text(one["candidate_ns"] / 1000),
            number_text(one["baseline_ns"] / 1000),
            " and ".join(f"{ratio:.2f}x" for ratio in one["ratios"]),
        )
        for one in found["against"]
    ]
    emit_table(title, ("over", "candidate us", "baseline us", "about, by process pair"), rows)
    control = " and ".join(f"{ratio:.2f}x" for ratio in found["control"])
    say(f"the eager baseline against itself reads {control}: what differs by no more than that is noise")
    if found["left_out"]:
        say(f"not measured here, but in a benchmark: {', '.join(found['left_out'])}")
    if hopeless(found):
        say(f"far below the {found['minimum_speedup']:g}x that a promotion needs: a benchmark won't find more")


def hopeless(found: Document) -> bool:
    """Return whether over some baseline even the best pair, times the control's largest error, misses the speedup."""
    noise = max(max(ratio, 1 / ratio) for ratio in found["control"])
    return any(max(one["ratios"]) * noise < found["minimum_speedup"] for one in found["against"])
