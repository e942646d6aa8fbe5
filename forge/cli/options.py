"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="The workspace. Default: FORGE_HOME, or the nearest parent folder with a kernel_registry.db.",
        show_default=False,
    ),
]
MOST_EVENTS = 2**63 - 1
"""Largest sequence number of an event: SQLite's largest integer (sqlite.org/datatype3.html)."""
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
Run = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, a unique beginning of an id, `last`, or `last-1`.")
]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="N",
        help="The GPU, by nvidia-smi's index or UUID. Default: the first that CUDA_VISIBLE_DEVICES names.",
        show_default=False,
    ),
]
