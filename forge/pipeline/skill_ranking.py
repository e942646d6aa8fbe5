"""Ranks texts of skills by BM25 over their fields, with SQLite's full-text index.

SQLite's `bm25()` is Okapi BM25 with k1 = 1.2, b = 0.75 and a weight for each column (https://sqlite.org/fts5.html,
section 5.1.1). Porter stemming makes "reduction" find "reductions". SQLite comes with Python, while a ranking library
would add numpy to an installation that doesn't need it.
"""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from forge.errors import EnvironmentUnfit, UsageError

WEIGHTS = {"id": 4.0, "tags": 6.0, "summary": 3.0, "text": 1.0}
"""Weights of the fields. An author chose the tags on purpose; a word in the text may be there by chance."""
NO_EVIDENCE = "-"
"""Text shown instead of a score that means nothing."""
_LEAST_SHOWN = 0.005
"""Smallest score that is shown. SQLite scores a word that more than half of the skills have with only 1e-6."""
_DIGITS = 9
"""Decimal digits that scores are rounded to, so that equal scores don't differ by the order of a sum."""


@dataclass(frozen=True)
class Concept:
    """One thing to look for."""

    text: str
    weight: float = 1.0
    phrase: bool = False
    """True if its words must follow each other. Otherwise each word counts by itself."""


class SkillText(NamedTuple):
    """What is searched of one skill."""

    id: str
    tags: Sequence[str]
    summary: str
    text: str


@dataclass(frozen=True)
class RankedSkill:
    """The rank of a skill that was found, and the concepts that found it."""

    id: str
    score: float
    """Sum of weight times BM25 over the concepts: larger is better."""
    matched: tuple[str, ...]
    """Concepts that found it, the one with the largest share of the score first."""

    @property
    def shown_score(self) -> str:
        """The score in two digits, or a dash if more than half of all skills have its words."""
        return f"{self.score:.2f}" if self.score >= _LEAST_SHOWN else NO_EVIDENCE


def words_of(untrusted_query: str) -> tuple[Concept, ...]:
    """Return each word of a query as a concept; raise UsageError if there are none."""
    words = dict.fromkeys(re.findall(r"[^\W_]+", untrusted_query.lower()))
    if not words:
        raise UsageError(
            f"query {untrusted_query!r} has no words: expected letters or digits", hint="forge skill list"
        )
    return tuple(Concept(word) for word in words)


def rank(skills: Sequence[SkillText], concepts: Sequence[Concept]) -> tuple[RankedSkill, ...]:
    """Return the skills that any concept finds, best first, ties by id."""
    gains: dict[str, list[tuple[float, str]]] = {}
    with closing(_index(skills)) as index:
        for concept in concepts:
            for found, score in _ask(index, concept):
                gains.setdefault(found, []).append((concept.weight * score, concept.text))
    hits = (_ranked(found, gained) for found, gained in gains.items())
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.id)))


def _ranked(found: str, gained: list[tuple[float, str]]) -> RankedSkill:
    ordered = sorted(gained, key=lambda one: (-round(one[0], _DIGITS), one[1]))
    return RankedSkill(
        id=found,
        score=round(sum(gain for gain, _ in ordered), _DIGITS),
        matched=tuple(dict.fromkeys(text for _, text in ordered)),
    )


def _index(skills: Sequence[SkillText]) -> sqlite3.Connection:
    """Return a full-text index of the skills in memory."""
    index = sqlite3.connect(":memory:")
    try:
        index.execute(f"CREATE VIRTUAL TABLE skill USING fts5({', '.join(WEIGHTS)}, tokenize='porter unicode61')")
    except sqlite3.OperationalError as error:
        message = f"this Python's SQLite {sqlite3.sqlite_version} has no full-text search: expected FTS5"
        raise EnvironmentUnfit(message, hint="use a Python whose sqlite3 module was built with FTS5") from error
    rows = [(one.id, " ".join(one.tags), one.summary, one.text) for one in skills]
    index.executemany("INSERT INTO skill VALUES (?, ?, ?, ?)", rows)
    return index


def _ask(index: sqlite3.Connection, concept: Concept) -> list[tuple[str, float]]:
    """Return ids and scores for one concept. SQLite gives negative scores, the best one lowest; ours are positive."""
    words = re.findall(r"[^\W_]+", concept.text)
    if not words:
        return []
    match = f'"{" ".join(words)}"' if concept.phrase else " OR ".join(f'"{word}"' for word in words)
    ranked = "SELECT id, -bm25(skill, ?, ?, ?, ?) FROM skill WHERE skill MATCH ? ORDER BY id"
    return [(str(found), float(score)) for found, score in index.execute(ranked, (*WEIGHTS.values(), match))]
