"""Two to four models for one purpose, side by side."""

from collections.abc import Callable, Sequence

from forge.domain.digest import Value
from forge.errors import UsageError
from forge.recommend.engine import Recommender
from forge.recommend.models import find_model
from forge.recommend.plan import Basis, Plan, Recommendation
from forge.recommend.request import Request

LEAST, MOST = 2, 4


class Highlight(Value):
    """The model that is best in one respect, and its figure."""

    model: str
    value: float
    basis: Basis


class Comparison(Value):
    """The answer for each model, and which stands out."""

    recommendations: tuple[Recommendation, ...]
    fastest: Highlight | None
    """Plan with the shortest time to the last token of one request, in ms. None: no model has a plan."""
    highest_throughput: Highlight | None
    """Plan with the most tokens a second per GPU."""
    cheapest: Highlight | None
    """Plan with the lowest price of a million tokens. None: a compared plan has no price."""
    summary: str


def compare(recommender: Recommender, request: Request, models: Sequence[str]) -> Comparison:
    """Ask the same of 2 to 4 different models; `request.model` is left aside. Raise UsageError for another number."""
    names = [find_model(name).name for name in models]
    if not LEAST <= len(names) <= MOST or len(set(names)) != len(names):
        raise UsageError(f"models {names}: expected {LEAST} to {MOST} different ones")
    answers = tuple(recommender.recommend(request.model_copy(update={"model": name})) for name in names)
    plans = [answer.recommended for answer in answers if answer.recommended is not None]
    priced = bool(plans) and all(plan.price_per_million_tokens is not None for plan in plans)
    fastest = _best(plans, lambda plan: plan.latency_ms.value)
    most = _best(plans, lambda plan: -plan.throughput_tok_s.value / plan.gpus)
    cheapest = _best(plans, lambda plan: plan.price_per_million_tokens or 0.0) if priced else None
    highest = None if most is None else most.model_copy(update={"value": -most.value})
    return Comparison(
        recommendations=answers,
        fastest=fastest,
        highest_throughput=highest,
        cheapest=cheapest,
        summary=_summary(names, answers, fastest, highest, cheapest),
    )


def _best(plans: Sequence[Plan], figure: Callable[[Plan], float]) -> Highlight | None:
    """Return the plan with the smallest figure; of equal ones, the first by name."""
    if not plans:
        return None
    best = min(plans, key=lambda plan: (figure(plan), plan.model))
    return Highlight(model=best.model, value=figure(best), basis=best.benchmark_source)


def _summary(
    names: Sequence[str],
    answers: Sequence[Recommendation],
    fastest: Highlight | None,
    highest: Highlight | None,
    cheapest: Highlight | None,
) -> str:
    without = [answer.model for answer in answers if answer.recommended is None]
    parts = [f"Of {', '.join(names)}:"]
    if fastest is not None and highest is not None:
        parts.append(f"{fastest.model} answers soonest ({fastest.value:,.0f} ms to the last token, {fastest.basis}),")
        parts.append(f"{highest.model} makes the most tokens per GPU ({highest.value:,.0f}/s, {highest.basis}).")
    if cheapest is not None:
        parts.append(f"{cheapest.model} costs least ({cheapest.value:,.3f} per million tokens).")
    if without:
        parts.append(f"No plan meets the constraints for {', '.join(without)}.")
    return " ".join(parts)
