"""Operations and skills: what can be asked for, and what an author is told."""

from typing import Annotated

import typer

from forge.cli.options import Json
from forge.cli.output import emit_json, emit_table

app = typer.Typer(help="Operations of the catalogue.", no_args_is_help=True, rich_markup_mode=None)
skills = typer.Typer(help="Skills: playbooks for authors.", no_args_is_help=True, rich_markup_mode=None)


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


@skills.command("list")
def list_skills(as_json: Json = False) -> None:
    """List every skill.

    Example: forge skill list
    """
    from forge.pipeline.plan import load_skills

    found = [{"id": one.id, "languages": sorted(one.languages), "tags": sorted(one.tags)} for one in load_skills()]
    if as_json:
        emit_json(found)
    else:
        rows = [(one["id"], ", ".join(one["languages"]), ", ".join(one["tags"])) for one in found]
        emit_table("Skills", ("skill", "languages", "tags"), rows)


@skills.command("show")
def show_skill(skill: Annotated[str, typer.Argument(help="The skill's id.")], as_json: Json = False) -> None:
    """Print a skill's text.

    Example: forge skill show patterns.test-plan
    """
    from forge.errors import UnknownName
    from forge.pipeline.plan import load_skills

    known = {one.id: one for one in load_skills()}
    if skill not in known:
        raise UnknownName("skill", skill, list(known))
    if as_json:
        emit_json({"id": skill, "text": known[skill].text})
    else:
        typer.echo(known[skill].text, nl=False)
