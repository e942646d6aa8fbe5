"""Operations: the catalogue that tasks are made from, and the user's own ones of a workspace."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forge.cli.opening import open_workspace
from forge.cli.operation_tables import show_operation, show_operations
from forge.cli.options import Home, Json
from forge.cli.output import emit_answer

if TYPE_CHECKING:
    from forge.operations.operation import Operation

app = typer.Typer(help="Operations of the catalogue, and your own.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_operations(home: Home = None, as_json: Json = False) -> None:
    """List every operation, with the number of known wrong answers that it refuses.

    In a workspace, the user's own operations follow those of the catalogue.

    Example: forge op list
    """
    from forge.operations import OPERATIONS

    show_operations([described(one) for one in OPERATIONS.values()], _own_operations(home), as_json=as_json)


def _own_operations(home: Path | None) -> list[dict[str, Any]]:  # Any: JSON documents
    """Return the own operations of the workspace; none outside of one, unless --home names it."""
    from forge.app.tasks.workspace_operations import own_operations
    from forge.errors import WorkspaceNotFound

    try:
        workspace = open_workspace(home)
    except WorkspaceNotFound:
        if home is not None:
            raise
        return []
    with workspace:
        return own_operations(workspace)


@app.command("show")
def show_one(
    op: Annotated[str, typer.Argument(help="The operation's name; an own one's beginning, with or without own_.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show an operation: signature, reference, numerics, workloads, typical domains, and wrong answers that test it.

    Example: forge op show rmsnorm
    """
    show_operation(_document(op, home), as_json=as_json)


@app.command("describe")
def describe_operations(home: Home = None, as_json: Json = False) -> None:
    """Record the operands and the reference of each operation with a promoted kernel, so that it can be adopted.

    A promotion does this by itself; this command is for a registry that an older Forge wrote.

    Example: forge op describe
    """
    from forge.app.tasks.operation_description import describe_promoted

    with open_workspace(home) as workspace:
        recorded = describe_promoted(workspace)
    emit_answer(recorded, "Described", ("operation", "event"), list(recorded.items()), as_json=as_json)


def _document(op: str, home: Path | None) -> dict[str, object]:
    """Return what is known of an operation: of the catalogue, or an own one of the workspace."""
    from forge.app.tasks.workspace_operations import find_own_operation
    from forge.errors import WorkspaceNotFound
    from forge.operations import OPERATIONS, find_operation

    if op in OPERATIONS:
        return described(OPERATIONS[op])
    try:
        workspace = open_workspace(home)
    except WorkspaceNotFound:
        if home is not None:
            raise
        return described(find_operation(op))
    with workspace:
        return find_own_operation(workspace, op)


def described(one: "Operation") -> dict[str, object]:
    """Return everything that Forge knows of an operation before there is a candidate."""
    from forge.operations import reference_source
    from forge.operations.scores import mutant_scores
    from forge.operations.typical_domains import TYPICAL_DOMAINS

    score = mutant_scores()[one.name]
    return {
        "op": one.name,
        "signature": one.signature,
        "summary": one.summary,
        "dtypes": list(one.dtypes),
        "scalars": dict(one.scalars),
        "updates": list(one.updates),
        "workloads": [dict(workload) for workload in one.workloads],
        "typical_domains": [
            {"domain": typical.conditions, "why": typical.why} for typical in TYPICAL_DOMAINS.get(one.name, ())
        ],
        "numerics": one.numerics,
        "mutants": {
            "killed": score.killed,
            "total": len(score.mutants),
            "names": list(score.mutants),
            "survivors": score.survivors,
        },
        "honest": {
            "accepted": score.accepted,
            "total": len(score.honest),
            "names": list(score.honest),
            "refused": score.refused,
        },
        "reference": reference_source(one),
    }
