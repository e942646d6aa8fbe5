"""Operations: what can be asked for."""

from typing import Annotated

import typer

from forge.cli.options import Json
from forge.cli.output import emit_json, emit_table

app = typer.Typer(help="Operations of the catalogue.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_operations(as_json: Json = False) -> None:
    """List every operation.

    Example: forge op list
    """
    from forge.operations import OPERATIONS

    found = [{"op": one.name, "signature": one.signature, "summary": one.summary} for one in OPERATIONS.values()]
    if as_json:
        emit_json(found)
    else:
        emit_table("Operations", ("operation", "signature", "what it is"), [tuple(one.values()) for one in found])


@app.command("show")
def show_operation(op: Annotated[str, typer.Argument(help="The operation's name.")], as_json: Json = False) -> None:
    """Show an operation: signature, reference, numerics, workloads.

    Example: forge op show rmsnorm
    """
    from forge.operations import find_operation, reference_source

    one = find_operation(op)
    document = {
        "op": one.name,
        "signature": one.signature,
        "summary": one.summary,
        "dtypes": list(one.dtypes),
        "scalars": dict(one.scalars),
        "workloads": [dict(workload) for workload in one.workloads],
        "numerics": one.numerics,
        "reference": reference_source(one),
    }
    if as_json:
        emit_json(document)
    else:
        emit_table(one.name, ("", ""), list(document.items()))
