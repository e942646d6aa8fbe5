"""Tasks from a user's own reference file: shows what was inferred before it is frozen."""

import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from forge.cli.opening import open_workspace
from forge.cli.output import emit_answer, emit_json, emit_table, say
from forge.cli.progress import reporting
from forge.cli.suggest import suggest, unused

if TYPE_CHECKING:
    from forge.app.tasks.references import Confirmable, DeclaredTexts, ImportedProblem
    from forge.pipeline.create import TaskRequest

REASON_SHOWN = 110
"""Largest number of characters of a reason in a table, so that a row fits; --json has all."""


def create_from_reference(
    path: Path,
    request: "TaskRequest",
    *,
    function: str,
    declared: "DeclaredTexts",
    yes: bool,
    home: Path | None,
    as_json: bool,
) -> None:
    """Infer, show, ask and freeze. Without a yes, record nothing and exit with status 1."""
    from forge.app.tasks.references import freeze_reference, infer_reference

    with open_workspace(home) as workspace:
        with reporting("reference") as progress:
            found = infer_reference(workspace, path, request, function=function, declared=declared, progress=progress)
        document = inferred_document(found)
        if not as_json:
            _show(document)
        if not (yes or _confirmed(as_json=as_json)):
            if as_json:
                emit_json({"task_id": None, "run_id": None, "prompt_path": None, "inferred": document})
            say("nothing was saved: answer yes, or add --yes, to create the task")
            suggest("try", f"forge task create --reference {path} --yes, with the other options as they are")
            raise typer.Exit(1)
        opened = freeze_reference(workspace, found)
    paths = {"task_id": opened.task_id, "run_id": opened.run_id, "prompt_path": str(opened.prompt_path)}
    answer = {**paths, "inferred": document, "same_as": opened.same_as}
    emit_answer(answer, "Task", ("task", "run", "prompt"), [tuple(paths.values())], as_json=as_json)
    say_same(opened.same_as)
    suggest("next", f"forge new {opened.task_id} {unused('my-kernel')}")


def say_same(same_as: tuple[str, ...]) -> None:
    """Say that a new task asks the same as earlier ones, and how to go on with the newest of those."""
    if same_as:
        others = f" and {len(same_as) - 1} more" if len(same_as) > 1 else ""
        say(f"note: this asks the same as {same_as[-1]}{others}; to go on with that: forge run open {same_as[-1]}")


def inferred_document(found: "Confirmable") -> dict[str, object]:
    """Return everything that was inferred, for the user to confirm."""
    from forge.operations.own import described

    inferred = found.inferred
    return {
        **described(inferred.contract),
        "set_bytes": inferred.contract.set_bytes,
        "held_out": len(inferred.held_out),
        "admission": inferred.admission.model_dump(mode="json"),
    }


def _confirmed(*, as_json: bool) -> bool:
    on_terminal = sys.stdin.isatty() and sys.stderr.isatty() and not as_json
    return on_terminal and typer.confirm("Freeze this task?", err=True)


def _show(document: dict[str, object]) -> None:
    """Print one line for each operand, weight and result, then the facts about the whole task."""
    arguments, weights, results = (_listed(document, key) for key in ("arguments", "weights", "results"))
    dtype = str(document["dtype"])
    kinds = document["kinds"]
    assert isinstance(kinds, list)
    rows = [_argument(one, dtype, leaves_range="outside_range" in kinds) for one in arguments]
    near = "near the model's initial values"
    rows += [("weight", ", ".join(map(str, _names(one))), _form(one, dtype), near) for one in weights]
    rows += [("result", "", _form(one, dtype), _error(one)) for one in results]
    emit_table("Inferred", ("", "name", "form", "values"), rows)
    held_out = document["held_out"]
    others = f"{held_out} others held out" if held_out else "none: it runs only at its own sizes"
    axes = _listed(document, "axes") if "axes" in document else []
    admission = document["admission"]
    assert isinstance(admission, dict)
    facts = [
        ("operation", document["op"]),
        ("form", f"{document['form']} {document['entry']}"),
        ("batch", f"{document['batch']}, {others}"),
        *((f"size {one['name']}", f"{one['size']}, varies from {one['low']} to {one['high']}") for one in axes),
        ("oracle", "the reference in fp64" if document["wide"] else f"itself in {dtype}: it doesn't run in fp64"),
        ("bytes of one call", document["set_bytes"]),
        ("known wrong answers", f"{admission['killed']} of {admission['mutants']} refused"),
    ]
    emit_table("", ("", ""), facts)


def _listed(document: dict[str, object], key: str) -> list[dict[str, object]]:
    found = document[key]
    assert isinstance(found, list)
    return found


def _names(weight: dict[str, object]) -> list[object]:
    names = weight["names"]
    assert isinstance(names, list)
    return names


def _argument(one: dict[str, object], dtype: str, *, leaves_range: bool) -> tuple[object, ...]:
    if "literal" in one:
        return "constant", one["name"], "", one["literal"]
    drawn = one["drawn"]
    assert isinstance(drawn, dict)
    values = ", ".join(f"{key} {value}" for key, value in drawn.items() if key != "family")
    by = {"file": "by get_inputs()", "planted": "by get_inputs()"}.get(str(one.get("source")), "as declared")
    outside = leaves_range and drawn["family"] == "uniform" and by != "as declared"
    also = ", asked outside of it too" if outside else ""
    return "operand", one["name"], _form(one, dtype), f"{drawn['family']}: {values}; {by}{also}"


def _form(one: dict[str, object], dtype: str) -> str:
    sizes = one["sizes"]
    assert isinstance(sizes, list)
    varied = one.get("varied", [])
    assert isinstance(varied, list)
    batched = ", axis 0 is the batch" if one.get("batched") else ""
    batched += "".join(f", axis {dim} is {axis}" for dim, axis in varied)
    return f"{one['element'] or dtype}[{', '.join(map(str, sizes))}]{batched}"


def _error(one: dict[str, object]) -> str:
    return "right or wrong" if one["element"] else f"the reference's own relative error is {one['error']:.3g}"


class Advance(Protocol):
    """Callback with the name of the next file, or with the number of files."""

    def __call__(self, step: str, total: int | None = None) -> None:
        """Show the progress."""


def import_collection(
    collection: str, path: Path, request: "TaskRequest", *, home: Path | None, as_json: bool
) -> None:
    """Import problem files one after the other; exit with status 1 if one was refused."""
    from forge.app.tasks.references import import_problems

    done: list[ImportedProblem] = []
    with open_workspace(home) as workspace, _importing() as advance:
        for total, one in import_problems(workspace, path, request, progress=advance):
            done.append(one)
            advance("", total)
    refused = [one for one in done if one.refusal is not None]
    if as_json:
        counts = {"imported": len(done) - len(refused), "refused": len(refused)}
        emit_json({**counts, "problems": [asdict(one) for one in done]})
    else:
        rows = [(one.problem, one.task_id or "refused", _shortened(one.refusal or "")) for one in done]
        emit_table(f"Problems of {collection}", ("problem", "task", "why not"), rows)
    say(f"{len(done) - len(refused)} imported, {len(refused)} refused")
    if refused:
        suggest("try", "forge task list")
        raise typer.Exit(1)
    suggest("next", "forge run open TASK")


def _shortened(reason: str) -> str:
    """Return a reason for a table's cell; a long one ends after a whole word."""
    return textwrap.shorten(reason, REASON_SHOWN, placeholder=" ...")


@contextmanager
def _importing() -> Iterator[Advance]:
    """Show a progress bar on a terminal, otherwise one line for each file."""
    if not sys.stderr.isatty():

        def line(step: str, total: int | None = None) -> None:  # noqa: ARG001 (a line says only which file)
            if step:
                say(f"import: {step}")

        yield line
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("import", total=None)

        def advance(step: str, total: int | None = None) -> None:
            if total is None:
                progress.update(bar, description=step[:40])
            else:
                progress.update(bar, total=total, advance=1)

        yield advance
