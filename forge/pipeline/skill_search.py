"""Finds skills by their words."""

from collections.abc import Sequence
from dataclasses import dataclass

from forge.pipeline.skill_ranking import Concept, RankedSkill, SkillText, rank
from forge.pipeline.skills import Skill


@dataclass(frozen=True)
class Hit:
    """A skill that was found, and its rank."""

    skill: Skill
    ranked: RankedSkill

    @property
    def matched(self) -> tuple[str, ...]:
        """Concepts that found it, the one with the largest share of the score first."""
        return self.ranked.matched


def search(skills: Sequence[Skill], concepts: Sequence[Concept]) -> tuple[Hit, ...]:
    """Return the skills that any concept finds, best first, ties by id."""
    known = {one.id: one for one in skills}
    texts = [SkillText(one.id, one.front.tags, one.front.summary, one.text) for one in skills]
    return tuple(Hit(known[found.id], found) for found in rank(texts, concepts))
