"""Prints skills: all of them as a table, or the text of one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forge.cli.output import emit_answer, emit_json, emit_table, emit_text, say

if TYPE_CHECKING:
    from forge.pipeline.skill_ranking import RankedSkill

Document = dict[str, Any]  # Any: a JSON document


def show_skills(documents: Sequence[Document], *, as_json: bool) -> None:
    """Print every skill, without its text."""
    rows = [(one["id"], one["category"], ", ".join(one["language"]), one["summary"]) for one in documents]
    columns = ("skill", "category", "languages", "what it is about")
    emit_answer(list(documents), "Skills", columns, rows, as_json=as_json)


def show_skill(document: Document, text: str, *, as_json: bool) -> None:
    """Print one skill's text, or its document with the text."""
    if as_json:
        emit_json({**document, "text": text})
    else:
        emit_text(text)


def show_found(found: "Sequence[tuple[Document, RankedSkill]]", *, as_json: bool) -> None:
    """Print the skills that were found, best first, with their ranks."""
    from forge.pipeline.skill_ranking import NO_EVIDENCE

    if as_json:
        emit_json([{**one, "score": rank.score, "matched": list(rank.matched)} for one, rank in found])
        return
    rows = [(one["id"], rank.shown_score, ", ".join(rank.matched), one["summary"]) for one, rank in found]
    emit_table("Skills", ("skill", "score", "matches", "what it is about"), rows)
    if any(rank.shown_score == NO_EVIDENCE for _, rank in found):
        say(f"{NO_EVIDENCE}: most skills have these words, so they rank none first; ask with rarer words")
