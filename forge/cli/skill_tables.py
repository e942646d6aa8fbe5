"""Prints skills: all of them as a table, or the text of one."""

from collections.abc import Sequence
from typing import Any

from forge.cli.output import emit_json, emit_table, emit_text

Document = dict[str, Any]  # Any: a JSON document


def show_skills(documents: Sequence[Document], *, as_json: bool) -> None:
    """Print every skill, without its text."""
    if as_json:
        emit_json(list(documents))
        return
    rows = [(one["id"], one["category"], ", ".join(one["language"]), one["summary"]) for one in documents]
    emit_table("Skills", ("skill", "category", "languages", "what it is about"), rows)


def show_skill(document: Document, text: str, *, as_json: bool) -> None:
    """Print one skill's text, or its document with the text."""
    if as_json:
        emit_json({**document, "text": text})
    else:
        emit_text(text)
