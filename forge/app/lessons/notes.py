"""Collects what an operation's history holds, for a page or for a program."""

from forge.app.audit.answer import named_rows
from forge.app.lessons.lesson_list import lessons_of
from forge.app.plain_events import HasEvents

Data = dict[str, object]
QUERIES = {
    "tasks": "SELECT * FROM tasks WHERE op = :op AND (:gpu IS NULL OR gpu = :gpu) ORDER BY seq",
    "experiments": """
        SELECT * FROM experiments WHERE op = :op AND (:gpu IS NULL OR gpu = :gpu) ORDER BY closed_seq DESC
    """,
    "undecided": """
        SELECT run_id, task_id, candidate, submitted_seq FROM trials
        WHERE op = :op AND (:gpu IS NULL OR gpu = :gpu) AND ended IS NULL ORDER BY submitted_seq
    """,
    "kernels": "SELECT * FROM kernels WHERE op = :op AND (:gpu IS NULL OR gpu = :gpu) ORDER BY promoted_seq DESC",
}


def gather(workspace: HasEvents, *, op: str, gpu: str | None) -> Data:
    """Return everything recorded about an operation, on one processor or on all; raise UnknownName."""
    names = {"op": op, "gpu": None if gpu is None else _known_gpu(gpu)}
    with workspace.publication.tables() as history:
        found: Data = {name: named_rows(history, query, names) for name, query in QUERIES.items()}
    if not found["tasks"]:
        from forge.operations import find_operation  # here: it loads the whole catalogue

        find_operation(op)
    taught = [one for one in lessons_of(workspace) if one["op"] == op]
    return {**names, "seq": workspace.head_seq, **found, "lessons": taught}


def notes(workspace: HasEvents, *, op: str, gpu: str | None) -> str:
    """Return everything recorded about an operation as Markdown; raise UnknownName."""
    from forge.pipeline.notes import render_notes  # here: JSON needs no templates

    found = gather(workspace, op=op, gpu=gpu)
    return render_notes(**found)  # type: ignore[arg-type]  # the names of `gather` are those of `render_notes`


def _known_gpu(untrusted_name: str) -> str:
    """Return a processor's name; raise UnknownName."""
    from forge.platforms import find_target  # here: most notes are asked for all processors

    return find_target(untrusted_name).gpu
