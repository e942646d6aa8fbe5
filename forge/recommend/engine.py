"""The recommender: resolve the names, look at every deployment, score, explain, and only then let passes annotate."""

from collections.abc import Sequence
from pathlib import Path

from forge.errors import UsageError
from forge.platforms import find_processor
from forge.recommend.explain import explanation_of, summary_of
from forge.recommend.kernels import KernelRegistryPass
from forge.recommend.models import ModelShape, find_model
from forge.recommend.options import Option, Search
from forge.recommend.passes import OptimizationPass, run_passes
from forge.recommend.plan import LeftOut, Plan, PlanFigure, Recommendation
from forge.recommend.quantization import STORAGE
from forge.recommend.request import Request
from forge.recommend.score import HOURS_PER_MONTH, Scored, score
from forge.recommend.serving_profile import ServingProfile, check_distinct

OVER_PROVISIONED = 1.5
"""Multiple of the cheapest sufficient plan's price above which a plan is called over-provisioned: a choice."""


class Recommender:
    """Ranks deployments. Safe to ask again and again: passes read what is newest each time."""

    def __init__(
        self,
        *,
        optimization_passes: Sequence[OptimizationPass] | None = None,
        profiles: Sequence[ServingProfile] = (),
        registry_path: Path | str | None = None,
    ) -> None:
        """Install `optimization_passes`, by default the one that reads the kernel registry at `registry_path`."""
        default = (KernelRegistryPass(registry_path),)
        self._passes = tuple(default if optimization_passes is None else optimization_passes)
        self._profiles = check_distinct(profiles)

    def recommend(self, request: Request) -> Recommendation:
        """Return the plans for one model; raise UnknownName or UsageError for a request that can't be answered."""
        model, request = find_model(request.model), _resolved(request)
        _require_sense(model, request)
        search = Search(request=request, model=model, prices=request.prices, profiles=self._profiles)
        found = search.run()
        scored = score(found.options, request)
        plans = self._plans(scored, request)
        best = plans[0] if plans and plans[0].meets_constraints else None
        summary = summary_of(request, plan=best, nearest=plans[0] if plans else None, left_out=found.left_out)
        return Recommendation(
            model=model.name,
            model_name=model.title,
            workload=request.workload,
            priority=request.priority,
            request=request,
            recommended=best,
            alternatives=plans[1:] if best else plans,
            considered=len(found.options),
            left_out=found.left_out,
            notes=(*found.notes, *_price_notes(found.options, request), *_gpu_notes(scored, found.left_out, request)),
            summary=summary,
        )

    def _plans(self, scored: list[Scored], request: Request) -> tuple[Plan, ...]:
        """Return the best plans that meet all limits; if there are none, those that miss by least."""
        meeting = [one for one in scored if one.meets]
        prices = [price for one in meeting if (price := one.option.price_per_hour) is not None]
        cheapest = min(prices) if prices and len(prices) == len(meeting) else None
        shown = (meeting or scored)[: request.plans]
        plans = tuple(_plan(one, rank=rank, cheapest=cheapest) for rank, one in enumerate(shown, start=1))
        return run_passes(self._passes, request, plans)


def _resolved(request: Request) -> Request:
    """Return the request with the slug of every GPU."""
    limits = request.constraints
    prices: dict[str, float] = {}
    for name, price in request.prices.items():
        slug = find_processor(name).slug
        if slug in prices:
            raise UsageError(f"the price of {slug!r} is given twice, once as {name!r}: expected once")
        prices[slug] = price
    gpus = None if limits.gpus is None else tuple(find_processor(name).slug for name in limits.gpus)
    return request.model_copy(
        update={
            "model": find_model(request.model).name,
            "prices": prices,
            "constraints": limits.model_copy(update={"gpus": gpus}),
            "prefer_gpu": None if request.prefer_gpu is None else find_processor(request.prefer_gpu).slug,
        }
    )


def _require_sense(model: ModelShape, request: Request) -> None:
    """Raise UsageError where the parts of a request contradict each other."""
    if (model.purpose == "embed") != (request.workload == "embedding"):
        raise UsageError(
            f"model {model.name!r} is made to {model.purpose}: expected another workload than "
            f"{request.workload!r}, or another model",
            hint="forge recommend --help",
        )
    if request.constraints.gpus == ():
        raise UsageError("no GPU is allowed: expected at least one, or no list")
    if request.needs_prices and not request.prices:
        raise UsageError(
            "cost can't be weighed without prices, and none is assumed: expected the price of one GPU's hour, "
            "for example --price h200=3.5"
        )


def _price_notes(options: Sequence[Option], request: Request) -> tuple[str, ...]:
    """Return which prices are missing, and which were given for nothing."""
    if not request.prices:
        return ("no prices were given: cost isn't weighed",)
    without = sorted({one.processor.slug for one in options if one.price_per_hour is None})
    unused = sorted(request.prices.keys() - {one.processor.slug for one in options})
    found = [f"cost isn't weighed: no price was given for {', '.join(without)}"] if without else []
    return (*found, *(f"the price of {slug} isn't used: no plan that was considered has this GPU" for slug in unused))


def _gpu_notes(scored: Sequence[Scored], left_out: Sequence[LeftOut], request: Request) -> tuple[str, ...]:
    """Return for each GPU that the caller names why none of the plans shown has it."""
    meeting = [one for one in scored if one.meets]
    ranked = [one.option.processor.slug for one in meeting or scored]
    reasons = {one.gpu: one.reason for one in left_out}
    notes = []
    for slug in request.constraints.gpus or ():
        if slug in reasons:
            notes.append(f"no plan with {slug}: {reasons[slug]}")
        elif slug not in ranked:
            notes.append(f"no plan with {slug} meets the constraints")
        elif slug not in ranked[: request.plans]:
            notes.append(f"the best plan with {slug} is number {ranked.index(slug) + 1} of {len(ranked)}")
    return tuple(notes)


def _plan(scored: Scored, *, rank: int, cheapest: float | None) -> Plan:
    one = scored.option
    price = one.price_per_hour
    over = None if price is None or cheapest is None else price > OVER_PROVISIONED * cheapest
    memory = one.processor.memory_gb
    return Plan(
        rank=rank,
        model=one.model.name,
        gpu=one.processor.slug,
        gpu_name=one.processor.name,
        gpus=one.gpus,
        tensor_parallel=one.gpus * one.processor.devices,
        backend=one.backends[0],
        other_backends=one.backends[1:],
        quantization=one.quantization,
        activation_dtypes=STORAGE[one.quantization].activations,
        traffic=one.traffic,
        context_tokens=one.context_tokens,
        running_requests=one.running,
        **_figures(one),
        memory_available_gb=memory,
        prefill_bound=one.first.bound if one.first else None,
        decode_bound=one.step.bound if one.step else None,
        price_per_hour=price,
        price_per_month=None if price is None else price * HOURS_PER_MONTH,
        price_per_million_tokens=one.price_per_million_tokens,
        benchmark_source="measured" if one.profile else "estimated",
        scores=scored.scores,
        checks=scored.checks,
        meets_constraints=scored.meets,
        is_recommended=rank == 1 and scored.meets,
        is_over_provisioned=over,
        explanation=explanation_of(scored),
    )


def _figures(one: Option) -> dict[str, PlanFigure | None]:
    """Return each figure with its basis."""
    profile = one.profile

    def figure(value: float, formula: str, *, quantile: str = "", measured: bool = profile is not None) -> PlanFigure:
        if profile is None or not measured:
            return PlanFigure(value=value, basis="estimated", how=formula)
        return PlanFigure(value=value, basis="measured", how=f"{quantile}measured by {profile.measured_by}")

    ttft = "p95, " if profile and profile.ttft_ms_p95 else "median, "
    tpot = "p95, " if profile and profile.tpot_ms_p95 else "median, "
    return {
        "ttft_ms": figure(one.ttft_ms, "prefill_roofline", quantile=ttft),
        "tpot_ms": None if one.tpot_ms is None else figure(one.tpot_ms, "decode_roofline", quantile=tpot),
        # a sum, even where its parts were measured: quantiles don't add up
        "latency_ms": figure(one.latency_ms, "ttft + (output tokens - 1) x tpot", measured=False),
        "throughput_tok_s": figure(one.throughput_tok_s, "interleaved_throughput"),
        "memory_gb": figure(
            one.memory_gb, "weights + cache + activations", measured=profile is not None and bool(profile.memory_gb)
        ),
    }
