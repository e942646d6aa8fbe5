"""agent score: an author over a suite of tasks, every task counted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forge.cli import agent_options as options
from forge.cli.agent_solve import Gpu, Language
from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_table
from forge.cli.progress import reporting

if TYPE_CHECKING:
    from forge.app.solve.score import ScoredTask

Suite = Annotated[
    Path, typer.Argument(metavar="SUITE", help="Folder of reference files, or a JSON list of operations and shapes.")
]


def register(app: typer.Typer) -> None:
    """Add the command to those of sessions."""
    app.command()(score)


def score(
    suite: Suite,
    author: options.AuthorKind,
    language: Language = "cpp",
    gpu: Gpu = "cpu",
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    key_file: options.KeyFile = None,
    agent_cmd: options.AgentCommand = None,
    allow: options.Allow = None,
    allow_env: options.AllowEnv = None,
    seed: options.Seed = None,
    candidates: options.Candidates = 40,
    minutes: options.Minutes = 240,
    device_minutes: options.DeviceMinutes = 240,
    dollars: options.Dollars = 0,
    tokens: options.Tokens = 0,
    price: options.Prices = None,
    option: options.Settings = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Let an author work on each task of a suite; print correctness rate, fast_p and cost, every task counted.

    The budget is shared equally by the tasks. A task that can't be opened counts as failed.

    Example: forge agent score ./problems --author model --model openai:gpt-5 --dollars 20 --tokens 9000000
    """
    from dataclasses import asdict

    from forge.app.sessions.choice import AuthorChoice
    from forge.app.sessions.opening import SessionRequest
    from forge.app.solve.authoring import SharedWork
    from forge.app.solve.score import read_suite, summed
    from forge.app.solve.score import score as score_suite
    from forge.pipeline.create import TaskRequest

    entries = read_suite(suite)
    choice = AuthorChoice(
        kind=author,
        model=model,
        base_url=base_url,
        agent_cmd=agent_cmd,
        allow=tuple(allow or ()),
        allow_env=tuple(allow_env or ()),
        options=dict(options.named_value(one) for one in option or []),
    )
    budget = options.amounts(candidates, minutes, device_minutes, dollars, tokens)
    prices = tuple(options.price_of(one) for one in price or [])
    request = SessionRequest(task="", seed=options.seed_or_drawn(seed), budget=budget, prices=prices)
    terms = TaskRequest(op="", language=language, gpu=gpu, dtype="fp32", shape="")
    with open_workspace(home) as workspace, reporting("score") as progress:
        work = SharedWork(workspace=workspace, choice=choice, request=request, key_file=key_file, progress=progress)
        rows = list(score_suite(workspace, entries, terms, work, progress=progress))
    total = summed(rows)
    if as_json:
        listed = [asdict(one) | {"used": one.used.model_dump(mode="json")} for one in rows]
        emit_json({"author": author, "model": model, "score": total, "tasks": listed})
    else:
        _show(rows, total)


def _show(rows: "list[ScoredTask]", total: dict[str, Any]) -> None:
    table = [
        (
            *(one.name, one.candidates, "yes" if one.correct else "no", f"{one.ratio:.3f}x" if one.ratio else "-"),
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
