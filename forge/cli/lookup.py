"""lookup: what an inference engine would be told."""

from typing import Annotated

import typer

from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_table, say


def register(app: typer.Typer) -> None:
    """Add these commands to the top level."""
    app.command()(lookup)


def lookup(
    op: Annotated[str, typer.Option(help="The operation.")],
    gpu: Annotated[str, typer.Option(help="The processor.")],
    dtype: Annotated[str, typer.Option(help="The element type.")],
    shape: Annotated[str, typer.Option(help="For example batch=16,hidden_size=4096.")],
    deprecated: Annotated[
        bool, typer.Option("--deprecated", help="A deprecated kernel may answer if nothing else does.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Ask the published registry for a kernel, and why not the others.

    Example: forge lookup --op fused_add_rmsnorm --gpu cpu --dtype fp32 --shape batch=16,hidden_size=4096
    """
    from forge.app.reads import look_up

    answer = look_up(home, op=op, gpu=gpu, dtype=dtype, shape=shape, deprecated=deprecated)
    if as_json:
        emit_json(answer)
    else:
        emit_table(
            "Lookup", ("match", "kernel", "source"), [(answer["match"], answer["kernel_id"], answer["source"])]
        )
        rejected = answer["rejected"]
        assert isinstance(rejected, list)
        if rejected:
            emit_table("", ("passed over", "why"), rejected)
    if answer["match"] == "none":
        say("try: forge kernel list")
        raise typer.Exit(1)
