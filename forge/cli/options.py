"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from forge.cli.progress import be_quiet, be_verbose


def on_another_machine(address: str | None) -> str | None:
    """Let the command's jobs run on the machine with this address."""
    if address is not None:
        from forge.app.machine.chosen_place import choose_place

        choose_place(address)
    return address


Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="The workspace. Default: FORGE_HOME, or the nearest parent folder with a kernel_registry.db.",
        show_default=False,
    ),
]
MOST_EVENTS = 10**9
"""Largest sequence number of an event that a command accepts: more than a ledger gets in centuries."""
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
Run = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, a unique beginning of an id, `last`, `last-1` or `r12`.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Report no progress.", callback=be_quiet, show_default=False)
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Report each step on a line of its own, with its time.",
        callback=be_verbose,
        show_default=False,
    ),
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
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ADDRESS",
        help="Another machine that runs the jobs: ssh://[user@]host[:port][/path/of/forge], or a node that "
        "`forge doctor --ray` lists.",
        callback=on_another_machine,
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option("--ray", metavar="HOST:PORT", help="A Ray cluster, by its head's address.", show_default=False),
]
PlainNetwork = Annotated[
    bool,
    typer.Option("--plain-network", help="With --ray: go on without encryption, because the network is private."),
]
JobsPerNode = Annotated[
    int,
    typer.Option(
        "--jobs-per-node",
        min=1,
        max=64,
        help="With --ray: number of jobs that run at once on a node without a GPU. A GPU always runs one.",
    ),
]
MOST_ROWS = 1_000_000
"""Largest limit of a list, in rows: more than any ledger holds."""
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", help="Show at most N rows.", min=1, max=MOST_ROWS, show_default=False),
]
Sort = Annotated[
    str | None,
    typer.Option(
        "--sort", metavar="COLUMN", help="Order by a column of the table; -COLUMN is descending.", show_default=False
    ),
]
OnlyOp = Annotated[str | None, typer.Option("--op", help="Only this operation.", show_default=False)]
OnlyGpu = Annotated[str | None, typer.Option("--gpu", help="Only this processor.", show_default=False)]
