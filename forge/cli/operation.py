"""Operations: the catalogue that tasks are made from."""

from typing import TYPE_CHECKING, Annotated

import typer

from forge.cli.document import emit_document
from forge.cli.options import Json
from forge.cli.output import emit_json, emit_table, emit_text

if TYPE_CHECKING:
    from forge.operations.operation import Operation

app = typer.Typer(help="Operations of the catalogue.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_operations(as_json: Json = False) -> None:
    """List every operation, with the number of known wrong answers that it refuses.

    Example: forge op list
    """
    from forge.operations import OPERATIONS
    from forge.operations.scores import mutant_scores

    scores = mutant_scores()
    found = [
        {
            "op": one.name,
            "signature": one.signature,
            "summary": one.summary,
            "mutants": {"killed": scores[one.name].killed, "total": len(scores[one.name].mutants)},
        }
        for one in OPERATIONS.values()
    ]
    if as_json:
        emit_json(found)
        return
    rows = [
        (one.name, one.signature, one.summary, f"{scores[one.name].killed}/{len(scores[one.name].mutants)}")
        for one in OPERATIONS.values()
    ]
    emit_table("Operations", ("operation", "signature", "what it is", "mutants refused"), rows)


@app.command("show")
def show_operation(op: Annotated[str, typer.Argument(help="The operation's name.")], as_json: Json = False) -> None:
    """Show an operation: signature, reference, numerics, workloads, typical domains, and wrong answers that test it.

    Example: forge op show rmsnorm
    """
    from forge.operations import find_operation

    one = find_operation(op)
    document = _described(one)
    if as_json:
        emit_json(document)
    else:
        emit_document(one.name, {name: value for name, value in document.items() if name != "reference"})
        emit_text(f"{document['reference']}\n")


def _described(one: "Operation") -> dict[str, object]:
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
