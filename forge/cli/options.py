"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="The workspace; by default FORGE_HOME, or the nearest parent folder with a kernel_registry.db.",
        show_default=False,
    ),
]
MOST_EVENTS = 2**63 - 1
"""The highest number that an event can have (sqlite.org/datatype3.html)."""
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout instead of a table.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, a unique beginning of it, or `last`.")]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="N",
        help="The GPU, by nvidia-smi's index or UUID; by default the first that CUDA_VISIBLE_DEVICES names.",
        show_default=False,
    ),
]
