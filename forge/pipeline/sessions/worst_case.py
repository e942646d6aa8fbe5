"""The worst case of each request of a step, which is reserved before the request is made."""

from forge.domain.authoring import OUTSIDE, Ask, Screen, Submit
from forge.domain.budget import Amounts
from forge.events.session import Purpose, SessionOpened

ANSWER_MS = 600_000
"""Time in which a language model answers, at most, in milliseconds. A long answer takes some minutes."""


def purpose_of(step: Screen | Submit | Ask) -> Purpose:
    """Return the purpose that a step's requests reserve budget for."""
    match step:
        case Screen():
            return "screening"
        case Submit():
            return "candidate"
        case Ask():
            return "model"


def worst_case(step: Screen | Submit | Ask, opened: SessionOpened) -> Amounts | None:
    """Return the most that one request of the step may use. None: the price of its model isn't known.

    A prompt has at most as many tokens as bytes, and a picture as characters in base64.
    """
    match step:
        case Screen():
            spent = opened.terms.draft_ms * (len(step.drafts) + 1)
            return Amounts(wall_ms=spent, device_ms=spent)
        case Submit():
            spent = opened.terms.candidate_ms
            return Amounts(wall_ms=spent, device_ms=spent, candidates=1)
        case Ask() if step.model in OUTSIDE:
            return Amounts(wall_ms=step.wait_ms or ANSWER_MS)
        case Ask():
            price = next((one for one in opened.prices if one.model == step.model), None)
            if price is None:
                return None
            return price.of(len(step.prompt.encode()) + len(step.image or ""), step.most_tokens) + Amounts(
                wall_ms=step.wait_ms or ANSWER_MS
            )
