"""Which plan is better: limits first, then a weighted geometric mean of how each compares with the best.

A weighted product keeps the order of two plans, whatever other plans are in the list. Scaling to the least and the
most of a list wouldn't.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from forge.recommend.options import Option
from forge.recommend.plan import ConstraintCheck, Scores
from forge.recommend.quantization import QUANTIZATIONS, STORAGE
from forge.recommend.request import Constraints, Priority, Request

HOURS_PER_MONTH = 730.0
"""Hours in a month: the 8,760 hours of a year over twelve."""
WEIGHTS: dict[Priority, dict[str, float]] = {
    "latency": {"latency": 0.60, "throughput": 0.10, "cost": 0.10, "quality": 0.15, "simplicity": 0.05},
    "throughput": {"latency": 0.10, "throughput": 0.60, "cost": 0.10, "quality": 0.15, "simplicity": 0.05},
    "cost": {"latency": 0.10, "throughput": 0.10, "cost": 0.60, "quality": 0.15, "simplicity": 0.05},
    "balanced": {"latency": 0.25, "throughput": 0.25, "cost": 0.25, "quality": 0.20, "simplicity": 0.05},
}
"""Weights of each priority: chosen, not measured. Without prices, the share of cost goes to the others."""
NOT_PREFERRED = 0.97
"""Factor on the score of a plan that the caller doesn't prefer, once for the GPU and once for the backend. Chosen; a
preference decides between plans that differ by less than 3 %."""


Found = Callable[[Option], float | None]


class Limit(NamedTuple):
    """One constraint that was given, and how an option's side of it is found."""

    name: str
    limit: float
    found: Found
    at_most: bool


@dataclass(frozen=True, kw_only=True)
class Scored:
    """One option with its limits checked and its place in the order."""

    option: Option
    parts: Mapping[str, float | None]
    total: float
    checks: tuple[ConstraintCheck, ...]

    @property
    def scores(self) -> Scores:
        """The partial scores, the total, and which constraints are met, as an answer shows them."""
        met = {f"meets_{name}": _all_met(self.checks, group) for name, group in _GROUPS.items()}
        return Scores.model_validate({**self.parts, "weighted_total": self.total, **met})

    @property
    def meets(self) -> bool:
        """Whether every limit holds."""
        return all(check.met for check in self.checks)

    @property
    def miss(self) -> float:
        """The sum of the logarithms of the factors by which limits are missed."""
        return sum(_factor(check) for check in self.checks if not check.met)

    @property
    def order(self) -> tuple[object, ...]:
        """Plans that meet everything by score, then the others by how little they miss; never a tie."""
        one = self.option
        named = (one.gpus, one.processor.slug, QUANTIZATIONS.index(one.quantization), one.backends)
        return (not self.meets, round(self.miss, 9), -self.total, *named)


_GROUPS = {
    "latency": ("ttft_ms", "tpot_ms", "latency_ms"),
    "throughput": ("throughput_tok_s", "requests_per_minute", "concurrency"),
    "budget": ("price_per_hour", "price_per_month", "price_per_million_tokens"),
    "memory": ("memory_gb",),
}


def score(options: Sequence[Option], request: Request) -> list[Scored]:
    """Return the options with their scores, the best first."""
    if not options:
        return []
    best = {
        "latency": min(one.latency_ms for one in options),
        "throughput": max(one.throughput_tok_s / one.gpus for one in options),
        "cost": min((one.price_per_million_tokens or math.inf for one in options), default=math.inf),
    }
    priced = all(one.price_per_hour is not None for one in options)
    weights = {name: weight for name, weight in WEIGHTS[request.priority].items() if priced or name != "cost"}
    limits = binding(request.constraints)
    found = []
    for one in options:
        parts = _parts(one, best, priced=priced)
        logarithms = sum(weight * math.log(parts[name] or 1.0) for name, weight in weights.items())
        total = math.exp(logarithms / sum(weights.values())) * _preference(one, request)
        checks = checks_of(one, limits)
        found.append(Scored(option=one, parts=parts, total=total, checks=checks))
    return sorted(found, key=lambda scored: scored.order)


def _parts(option: Option, best: dict[str, float], *, priced: bool) -> dict[str, float | None]:
    """Return each part of a score, above 0 and at most 1; the best option has 1.

    Throughput is counted per GPU, since more replicas multiply it. Quality is an ordering by bits, log2(bits) over
    log2 of the published weights' bits: no accuracy was measured. Simplicity is 1 / (1 + log2(GPUs)).
    """
    price = option.price_per_million_tokens
    bits, native = STORAGE[option.quantization].bits, option.model.native_bits
    return {
        "latency": best["latency"] / option.latency_ms,
        "throughput": option.throughput_tok_s / option.gpus / best["throughput"],
        "cost": best["cost"] / price if priced and price is not None else None,
        "quality": min(math.log2(bits) / math.log2(native), 1.0),
        "simplicity": 1 / (1 + math.log2(option.gpus)),
    }


def _preference(option: Option, request: Request) -> float:
    gpu, backend = request.prefer_gpu, request.prefer_backend
    factor = 1.0 if gpu in {None, option.processor.slug} else NOT_PREFERRED
    return factor * (1.0 if backend in {None, option.backends[0]} else NOT_PREFERRED)


def binding(limits: Constraints) -> tuple[Limit, ...]:
    """Return the limits that the request gives."""
    most: tuple[tuple[str, float | None, Found], ...] = (
        ("ttft_ms", limits.max_ttft_ms, lambda one: one.ttft_ms),
        ("tpot_ms", limits.max_tpot_ms, lambda one: one.tpot_ms),
        ("latency_ms", limits.max_latency_ms, lambda one: one.latency_ms),
        ("memory_gb", limits.max_memory_gb, lambda one: one.memory_gb),
        ("price_per_hour", limits.max_price_per_hour, lambda one: one.price_per_hour),
        ("price_per_month", limits.max_price_per_month, _monthly),
        ("price_per_million_tokens", limits.max_price_per_million_tokens, lambda one: one.price_per_million_tokens),
    )
    least: tuple[tuple[str, float | None, Found], ...] = (
        ("throughput_tok_s", limits.min_throughput_tok_s, lambda one: one.throughput_tok_s),
        ("requests_per_minute", limits.min_requests_per_minute, lambda one: one.requests_per_minute),
        ("concurrency", limits.concurrency, lambda one: one.running),
    )
    return (
        *(Limit(name, limit, found, True) for name, limit, found in most if limit is not None),
        *(Limit(name, limit, found, False) for name, limit, found in least if limit is not None),
    )


def checks_of(option: Option, limits: Sequence[Limit]) -> tuple[ConstraintCheck, ...]:
    """Compare each limit with the option. A limit on tokens is left out if the option makes none."""
    return tuple(
        ConstraintCheck(name=one.name, limit=one.limit, found=found, met=_met(found, one))
        for one in limits
        if (found := one.found(option)) is not None
    )


def _met(found: float, limit: Limit) -> bool:
    return found <= limit.limit if limit.at_most else found >= limit.limit


def _monthly(option: Option) -> float | None:
    return None if option.price_per_hour is None else option.price_per_hour * HOURS_PER_MONTH


def _factor(check: ConstraintCheck) -> float:
    return abs(math.log(check.found / check.limit))


def _all_met(checks: Sequence[ConstraintCheck], names: tuple[str, ...]) -> bool | None:
    found = [check.met for check in checks if check.name in names]
    return all(found) if found else None
