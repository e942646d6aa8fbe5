"""Prints operations: the list, and everything that is known of one."""

from collections.abc import Sequence
from typing import Any

from forge.cli.document import emit_document
from forge.cli.output import emit_json, emit_table, emit_text

Document = dict[str, Any]  # Any: a JSON document
LISTED = ("op", "signature", "summary", "mutants")
COLUMNS = ("operation", "signature", "what it is", "mutants refused")


def show_operations(catalogue: Sequence[Document], own: Sequence[Document], *, as_json: bool) -> None:
    """Print the operations of the catalogue, then those of the workspace."""
    if as_json:
        emit_json([_listed(one) for one in (*catalogue, *own)])
        return
    emit_table("Operations", COLUMNS, [_row(_listed(one)) for one in catalogue])
    if own:
        emit_table("Own operations of this workspace", COLUMNS, [_row(_listed(one)) for one in own])


def _listed(one: Document) -> Document:
    tried = one["mutants"]
    counted = tried and {"killed": tried["killed"], "total": tried["total"]}
    return {name: counted if name == "mutants" else one[name] for name in LISTED}


def _row(one: Document) -> tuple[str, ...]:
    tried = one["mutants"]
    score = f"{tried['killed']}/{tried['total']}" if tried else "not tried"
    return one["op"], one["signature"], one["summary"], score


def show_operation(document: Document, *, as_json: bool) -> None:
    """Print everything that is known of one operation."""
    if as_json:
        emit_json(document)
        return
    emit_document(str(document["op"]), {name: value for name, value in document.items() if name != "reference"})
    emit_text(f"{document['reference']}\n")
