"""agent score: an author over a suite of tasks, every task counted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forge.cli.agent_options import SharedWorkOptions
from forge.cli.opening import open_workspace
from forge.cli.option_groups import with_groups
from forge.cli.options import Home, Json
from forge.cli.output import SIMULATED, emit_json, emit_table
from forge.cli.progress import reporting

if TYPE_CHECKING:
    from forge.app.solve.score import ScoredTask

Suite = Annotated[
    Path, typer.Argument(metavar="SUITE", help="Folder of reference files, or a JSON list of operations and shapes.")
]


@with_groups
def score(suite: Suite, author: SharedWorkOptions, home: Home = None, as_json: Json = False) -> None:
    """Let an author work on each task of a suite; print correctness rate, fast_p and cost, every task counted.

    The budget is shared equally by the tasks. A task that can't be opened counts as failed.

    Example: forge agent score ./problems --author model --model openai:gpt-5 --dollars 20 --tokens 9000000
    """
    from dataclasses import asdict

    from forge.app.solve.authoring import SharedWork
    from forge.app.solve.score import read_suite, summed
    from forge.app.solve.score import score as score_suite

    entries = read_suite(suite)
    choice, request = author.choice(), author.request()
    with open_workspace(home) as workspace, reporting("score") as progress:
        work = SharedWork(
            workspace=workspace, choice=choice, request=request, key_file=author.key_file, progress=progress
        )
        rows = list(score_suite(workspace, entries, author.terms(), work, progress=progress))
    total = summed(rows)
    if as_json:
        listed = [asdict(one) | {"used": one.used.model_dump(mode="json")} for one in rows]
        emit_json({"author": author.author, "model": author.model, "score": total, "tasks": listed})
    else:
        _show(rows, total)


def _said(*, correct: bool, simulated: bool) -> str:
    return f"{'yes' if correct else 'no'}{f' ({SIMULATED})' if simulated else ''}"


def _show(rows: "list[ScoredTask]", total: dict[str, Any]) -> None:
    table = [
        (
            *(
                one.name,
                one.candidates,
                _said(correct=one.correct, simulated=one.simulated),
                f"{one.ratio:.3f}x" if one.ratio else "-",
            ),
            *(", ".join(one.kernels) or "-", one.failure or ""),
        )
        for one in rows
    ]
    emit_table("Tasks", ("task", "candidates", "correct", "speedup", "promoted", "failed because"), table)
    fast = [(name.replace("_", " "), f"{share:.0%}") for name, share in total.items() if name.startswith("fast_")]
    spent = total["used"]
    emit_table(
        "Score, every task counted",
        ("", ""),
        [
            ("correct", f"{total['correctness_rate']:.0%} of {total['tasks']} tasks"),
            *fast,
            ("promoted", total["promoted"]),
            ("used", f"{spent['candidates']} candidates, {spent['device_ms'] / 1000:.0f} s on the device"),
            ("money", f"${spent['micro_dollars'] / 1e6:.2f}, {spent['tokens']} tokens"),
        ],
    )
