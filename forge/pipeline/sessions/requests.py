"""The requests of a step: one for each draft of a submission or each prompt, and one for a screening."""

from forge.domain.authoring import Ask, Screen, Submit
from forge.domain.digest import sha256
from forge.events.session import BudgetReserved, ModelRequested
from forge.projections.sessions import RoundState


def places_of(step: Screen | Submit | Ask) -> range:
    """Return the places of a step's requests."""
    match step:
        case Submit():
            return range(len(step.drafts))
        case Ask():
            return range(step.count)
        case Screen():
            return range(1)


def asked_at(step: Screen | Submit | Ask, place: int) -> Screen | Submit | Ask:
    """Return the part of a step that the request at `place` carries out: of several prompts one, else the whole."""
    return step.at(place) if isinstance(step, Ask) else step


def model_requested(reserved: BudgetReserved, step: Ask) -> ModelRequested:
    """Return the event that is recorded before a prompt is sent to a model."""
    return ModelRequested(
        session_id=reserved.session_id,
        round=reserved.round,
        request=reserved.request,
        model=step.model,
        prompt_sha256=sha256(step.prompt.encode()),
        most_tokens=step.most_tokens,
    )


def free_place(step: Screen | Submit | Ask, current: RoundState) -> int | None:
    """Return the first place that has neither an answer nor an open request; None if there is none."""
    busy = {one.reserved.place for one in current.open_requests}
    free = (one for one in places_of(step) if one not in busy and current.answer_of(one) is None)
    return next(free, None)
