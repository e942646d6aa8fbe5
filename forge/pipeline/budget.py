"""Fits a brief into a budget of tokens by dropping skills and experiments in a fixed order."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from forge.events.plan import EarlierExperiment
from forge.pipeline.skills import Category, Skill

DEFAULT_TOKENS = 16_000
"""Default budget of a brief, in tokens. A brief with five embedded skills takes about half; packaged skills are
longer."""
BYTES_PER_TOKEN = 3.5
"""Average bytes of one token, for an estimate without a model's vocabulary. It isn't a bound: code and tables take
more tokens for their bytes than prose. So leave room below a model's limit."""
DROPPED_FIRST: tuple[Category, ...] = ("porting", "technique", "hygiene", "playbook", "operation")
"""Order in which skills are dropped, by category: what an author misses least goes first. Within a category the
plan's last skill goes first. Then experiments are dropped, last first. The task itself is never dropped."""


@dataclass(frozen=True)
class Told:
    """The skills and earlier experiments that a brief includes, and those that it leaves out."""

    skills: tuple[Skill, ...]
    earlier: tuple[EarlierExperiment, ...]
    left_out: tuple[str, ...] = ()
    """Dropped skills by id and experiments by event, in the order in which they were dropped."""


def tokens_of(text: str) -> int:
    """Return the estimated number of tokens of a text, from its length in bytes."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def fit(told: Told, render: Callable[[Told], str], *, budget_tokens: int) -> tuple[Told, str]:
    """Drop one skill or experiment after the other until the text fits, or nothing is left to drop."""
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
