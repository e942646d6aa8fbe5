"""How much of what could be told fits into a prompt: what is dropped, and in which order."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from forge.events.plan import EarlierExperiment
from forge.pipeline.skills import Category, Skill

DEFAULT_TOKENS = 16_000
"""About twice what a brief with five embedded skills takes: room for skills of the package, which are longer."""
BYTES_PER_TOKEN = 3.5
"""For an estimate that needs no vocabulary. It is not a bound: code and tables of figures take more tokens for their
bytes than prose does, so leave room below a model's limit."""
DROPPED_FIRST: tuple[Category, ...] = ("porting", "technique", "hygiene", "playbook", "operation")
"""Skills by what an author misses least; of one category the last of the plan first. Then experiments, the last of
the list first. What the task asks is never dropped."""


@dataclass(frozen=True)
class Told:
    """What of the skills and the earlier experiments is told, and what isn't."""

    skills: tuple[Skill, ...]
    earlier: tuple[EarlierExperiment, ...]
    left_out: tuple[str, ...] = ()
    """Skills by id and experiments by event, in the order in which they were dropped."""


def tokens_of(text: str) -> int:
    """About how many tokens a text takes."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def fit(told: Told, render: Callable[[Told], str], *, budget_tokens: int) -> tuple[Told, str]:
    """Drop one thing after the other until the text fits, or nothing is left to drop."""
    text = render(told)
    while tokens_of(text) > budget_tokens and (told.skills or told.earlier):
        told = _without_one(told)
        text = render(told)
    return told, text


def _without_one(told: Told) -> Told:
    for category in DROPPED_FIRST:
        for skill in reversed(told.skills):
            if skill.front.category == category:
                kept = tuple(one for one in told.skills if one != skill)
                return replace(told, skills=kept, left_out=(*told.left_out, skill.id))
    *kept_experiments, last = told.earlier
    dropped = f"experiment {last.closed_seq or last.run_id}"
    return replace(told, earlier=tuple(kept_experiments), left_out=(*told.left_out, dropped))
