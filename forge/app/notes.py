"""Collects what an operation's history holds, for a page or for a program."""

import sqlite3

from forge.app.lesson import described, lessons
from forge.app.workspace import Workspace
from forge.operations import find_operation
from forge.pipeline.notes import render_notes
from forge.platforms import find_target

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


def gather(workspace: Workspace, *, op: str, gpu: str | None) -> Data:
    """Return everything recorded about an operation, on one processor or on all; raise UnknownName."""
    names = {"op": op, "gpu": None if gpu is None else find_target(gpu).gpu}
    with workspace.publication.tables() as history:
        found: Data = {name: _rows(history, query, names) for name, query in QUERIES.items()}
    if not found["tasks"]:
        find_operation(op)
    taught = [described(one) for one in lessons(workspace) if one.proposed.event.op == op]
    return {**names, "seq": workspace.ledger.head.seq, **found, "lessons": taught}


def notes(workspace: Workspace, *, op: str, gpu: str | None) -> str:
    """Return everything recorded about an operation as Markdown; raise UnknownName."""
    found = gather(workspace, op=op, gpu=gpu)
    return render_notes(**found)  # type: ignore[arg-type]  # the names of `gather` are those of `render_notes`


def _rows(history: sqlite3.Connection, query: str, names: dict[str, str | None]) -> list[Data]:
    found = history.execute(query, names)
    columns = [name for name, *_ in found.description]
    return [dict(zip(columns, row, strict=True)) for row in found]
