"""The options of `forge agent`, one for each thing that an author is made from or may use."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from forge.domain.budget import Amounts, Price

TaskName = Annotated[str, typer.Argument(metavar="TASK", help="A task's id or a unique beginning of it.")]
AuthorKind = Annotated[
    str, typer.Option("--author", help="Kind of author: search, folders, model, command or person.")
]
Template = Annotated[
    Path | None,
    typer.Option("--template", metavar="FOLDER", help="Folder that a search or a list of folders is made from."),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", metavar="PROVIDER:MODEL", help="Language model, such as openai:NAME or anthropic:NAME."),
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="Address of the model's server. Default: the provider's own.")
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", help="File with the model's key. Default: the provider's variable in the environment."
    ),
]
AgentCommand = Annotated[
    str | None, typer.Option("--agent-cmd", metavar="COMMAND", help="Command of a coding agent, in one text.")
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="PATH[:rw]", help="Path that the command may see besides; repeat it."),
]
AllowEnv = Annotated[
    list[str] | None,
    typer.Option("--allow-env", metavar="NAME", help="Variable that the command gets, such as its key; repeat it."),
]
Hypothesis = Annotated[str, typer.Option("--hypothesis", help="Why it is right, or faster, and what changed.")]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile", metavar="TOOL:FILE", help="Export of a profiler, such as perf:stat.txt or ncu:raw.csv."
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, max=2**48 - 1, help="Default: drawn.")]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="MODEL=IN,OUT",
        help="Dollars for a million tokens, prompt and answer; repeat it for each model.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Option of the author, such as finalists=2; repeat it."),
]
RoundsWithoutGain = Annotated[
    int,
    typer.Option("--rounds-without-gain", min=1, max=10**6, help="Number of rounds without a gain that end it."),
]
FloorShare = Annotated[
    float, typer.Option("--floor-share", min=0.01, max=1, help="End at this share of the shortest possible time.")
]
Workers = Annotated[
    int,
    typer.Option(
        "--workers", min=0, max=64, help="Candidates that `forge work` judges at once; 0: this process judges."
    ),
]
Candidates = Annotated[
    int, typer.Option("--candidates", min=0, max=10**6, help="Candidates that may take all phases.")
]
Minutes = Annotated[float, typer.Option("--minutes", min=0, max=1e6, help="Time on the clock, in minutes.")]
DeviceMinutes = Annotated[
    float, typer.Option("--device-minutes", min=0, max=1e6, help="Time on the judging device, in minutes.")
]
Dollars = Annotated[float, typer.Option("--dollars", min=0, max=1e6, help="Money for language models.")]
Tokens = Annotated[int, typer.Option("--tokens", min=0, max=10**12, help="Tokens of language models.")]


def amounts(candidates: int, minutes: float, device_minutes: float, dollars: float, tokens: int) -> "Amounts":
    """Return a budget from what its options say."""
    from forge.domain.budget import Amounts

    return Amounts(
        candidates=candidates,
        wall_ms=round(minutes * 60_000),
        device_ms=round(device_minutes * 60_000),
        micro_dollars=round(dollars * 1_000_000),
        tokens=tokens,
    )


def seed_or_drawn(seed: int | None) -> int:
    """Return the given seed, or a new one."""
    if seed is not None:
        return seed
    from forge.lab.inputs.seeded import new_seed

    return new_seed()


def named_value(text: str) -> tuple[str, str]:
    """Return the name and the value of `--set NAME=VALUE`; raise UsageError."""
    from forge.errors import UsageError

    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"bad option {text!r:.100}: expected NAME=VALUE, such as finalists=2")
    return name, value


def price_of(text: str) -> "Price":
    """Return the price of `--price MODEL=IN,OUT`; raise UsageError."""
    from forge.app.sessions.prices import parse_price

    return parse_price(text)
