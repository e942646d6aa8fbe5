"""The options of `forge agent run`, one for each thing that an author is made from or may use."""

from pathlib import Path
from typing import Annotated

import typer

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
