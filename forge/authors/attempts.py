"""Attempts of a session as its author sees them: equal ones, refuted hypotheses, and the fastest right one."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forge.domain.authoring import Draft, Judged
from forge.domain.digest import Digest, sha256
from forge.domain.parsed_source import parse_source


@dataclass(frozen=True)
class Attempt:
    """A draft, and what was found about it."""

    draft: Draft
    judged: Judged

    @property
    def is_right(self) -> bool:
        """Return whether every gate passed."""
        return self.judged.passed_gates

    @property
    def ratio(self) -> float:
        """Return the measured speedup; 0 if there is none."""
        return self.judged.speedup.ratio if self.judged.speedup is not None else 0.0


def meaning_of(kernel: str) -> Digest:
    """Return a digest that doesn't change with comments and layout; of the bytes if the text isn't Python."""
    try:
        return sha256(ast.dump(parse_source(kernel)).encode(errors="surrogatepass"))
    except (SyntaxError, ValueError, RecursionError):
        return sha256(kernel.encode(errors="surrogatepass"))


def words_of(hypothesis: str) -> tuple[str, ...]:
    """Return a hypothesis as its words, so that case and punctuation don't make another one of it."""
    return tuple(re.findall(r"[a-z0-9_]+", hypothesis.lower()))


def fastest(attempts: Sequence[Attempt], count: int) -> list[Attempt]:
    """Return up to `count` right attempts with the highest speedups, the fastest first; an earlier one wins a tie."""
    return sorted((one for one in attempts if one.is_right), key=lambda one: -one.ratio)[:count]


def refuted(attempts: Sequence[Attempt]) -> dict[tuple[str, ...], int]:
    """Return the hypotheses of right attempts that were no faster than the best before -> number of the attempt."""
    best, found = 0.0, {}
    for number, one in enumerate(attempts, 1):
        words = words_of(one.draft.hypothesis)
        if one.is_right and best and one.judged.speedup is not None and one.judged.speedup.low <= best and words:
            found[words] = number
        best = max(best, one.ratio if one.is_right else 0.0)
    return found


def why_known(
    meaning: Digest, hypothesis: str, *, seen: Mapping[Digest, int], attempts: Sequence[Attempt], same: str
) -> str | None:
    """Return why a kernel needn't be judged: it is the `same` as an earlier one, or its hypothesis was refuted."""
    if meaning in seen:
        return f"{same} {seen[meaning]}: expected another one"
    blocked = refuted(attempts).get(words_of(hypothesis))
    return None if blocked is None else f"the hypothesis was refuted by attempt {blocked}: expected another one"
