"""One exchange with a language model, a program or a person: what was answered, or why nothing was."""

import time
from dataclasses import dataclass
from typing import Protocol

from forge.domain.authoring import Ask

NS_PER_MS = 1_000_000
"""Number of nanoseconds in a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What a model said, and what that cost."""

    text: str
    prompt_tokens: int
    answer_tokens: int


class ModelUnanswered(Exception):
    """A model gave no answer that can be used. `cause` is one of ModelFailed's."""

    def __init__(self, cause: str, detail: str, *, tokens: tuple[int, int] | None = None) -> None:
        super().__init__(detail)
        self.cause, self.detail, self.tokens = cause, detail, tokens


class Model(Protocol):
    """Sends a prompt to language models."""

    def answer(self, step: Ask, *, request_id: str) -> ModelAnswer:
        """Return the answer; raise ModelUnanswered."""


@dataclass(frozen=True)
class Exchanged:
    """What came of one exchange, and how long it took."""

    answer: ModelAnswer | ModelUnanswered
    wall_ms: int


def exchange(model: Model | None, step: Ask, request_id: str) -> Exchanged:
    """Ask a model once, in any thread."""
    began = time.monotonic_ns()
    answer: ModelAnswer | ModelUnanswered
    try:
        if model is None:
            raise ModelUnanswered("unreachable", "this session has no model to ask", tokens=(0, 0))
        answer = model.answer(step, request_id=request_id)
    except ModelUnanswered as failed:
        answer = failed
    return Exchanged(answer, (time.monotonic_ns() - began) // NS_PER_MS)
