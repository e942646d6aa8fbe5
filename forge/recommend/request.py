"""What a plan is asked for: the model, the workload, what matters most, and what must hold."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationError

from forge.domain.digest import Value
from forge.errors import UsageError
from forge.recommend.quantization import Backend, Quantization

Workload = Literal["chat", "codegen", "summarization", "batch", "embedding"]
Priority = Literal["latency", "throughput", "cost", "balanced"]

Positive = Annotated[float, Field(ge=1e-9, le=1e12)]
"""A time, rate or price. Smaller values aren't real, and their quotients overflow a float."""
LEAST_PRICE = 1e-6
"""Lowest price of one GPU for an hour, in the caller's own currency. It is the lowest that an error shows as above
zero, with six decimals."""
Tokens = Annotated[int, Field(gt=0, le=10**9)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=80)]


class Traffic(Value):
    """What one request looks like, and how many are in the system at once."""

    prompt_tokens: Tokens
    output_tokens: Annotated[int, Field(ge=0, le=10**9)]
    """0 where nothing is generated: embeddings."""
    concurrency: Annotated[int, Field(gt=0, le=100_000)]


TRAFFIC: dict[Workload, Traffic] = {
    "chat": Traffic(prompt_tokens=1024, output_tokens=256, concurrency=16),
    "codegen": Traffic(prompt_tokens=2048, output_tokens=512, concurrency=16),
    "summarization": Traffic(prompt_tokens=4096, output_tokens=256, concurrency=16),
    "batch": Traffic(prompt_tokens=1024, output_tokens=256, concurrency=128),
    "embedding": Traffic(prompt_tokens=512, output_tokens=0, concurrency=32),
}
"""Traffic that is assumed if the caller gives none: round numbers, not from a measured service."""


class Constraints(Value):
    """What a plan must hold to; None doesn't bind. Prices are in the caller's own currency."""

    max_ttft_ms: Positive | None = None
    """Longest time until the first token of an unqueued request."""
    max_tpot_ms: Positive | None = None
    """Longest time between two tokens of one request, at the asked concurrency."""
    max_latency_ms: Positive | None = None
    """Longest time until the last token of an unqueued request."""
    min_throughput_tok_s: Positive | None = None
    """Tokens of the whole plan: output tokens, or prompt tokens if nothing is generated."""
    min_requests_per_minute: Positive | None = None
    max_price_per_hour: Positive | None = None
    max_price_per_month: Positive | None = None
    max_price_per_million_tokens: Positive | None = None
    max_memory_gb: Positive | None = None
    """Memory of one GPU that the plan may fill."""
    min_context_tokens: Tokens | None = None
    concurrency: Annotated[int, Field(gt=0, le=100_000)] | None = None
    """Requests that must fit into memory together."""
    gpus: tuple[Name, ...] | None = None
    """Closed list of GPU models. None: any model."""
    max_gpus: Annotated[int, Field(gt=0, le=1024)] = 8
    quantizations: tuple[Quantization, ...] | None = None
    backends: tuple[Backend, ...] | None = None


class Request(Value):
    """One question to the recommender."""

    model: Name
    workload: Workload = "chat"
    priority: Priority = "balanced"
    constraints: Constraints = Constraints()
    prices: Mapping[Name, Positive] = Field(default_factory=dict)
    """GPU -> price of one for an hour, in the caller's currency. None is assumed: without it there is no cost."""
    prompt_tokens: Tokens | None = None
    output_tokens: Annotated[int, Field(ge=0, le=10**9)] | None = None
    plans: Annotated[int, Field(ge=1, le=1000)] = 4
    """Number of plans in the answer, at most: the recommended one and its alternatives."""
    prefer_gpu: Name | None = None
    prefer_backend: Backend | None = None
    """Preferred GPU or backend. It decides between plans that are otherwise alike; it excludes nothing."""

    @property
    def needs_prices(self) -> bool:
        """Whether its priority or one of its limits is about cost."""
        one = self.constraints
        limits = (one.max_price_per_hour, one.max_price_per_month, one.max_price_per_million_tokens)
        return self.priority == "cost" or any(limit is not None for limit in limits)

    @property
    def traffic(self) -> Traffic:
        """What the caller said of the traffic, and the workload's assumption for the rest."""
        assumed = TRAFFIC[self.workload]
        generates = self.workload != "embedding"
        return Traffic(
            prompt_tokens=self.prompt_tokens or assumed.prompt_tokens,
            output_tokens=(self.output_tokens or assumed.output_tokens) if generates else 0,
            concurrency=self.constraints.concurrency or assumed.concurrency,
        )


def parse_request(untrusted: Mapping[str, object]) -> Request:
    """Return the request, validated; raise UsageError that names the field, what was given and what was expected."""
    try:
        return Request.model_validate(untrusted)
    except ValidationError as error:
        raise UsageError(told(error)) from error


def told(error: ValidationError) -> str:
    """Return the first error of a validation, in one line."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "the value"
    wanted = re.sub(r"^(Input|String|List|Value) should (be |have )?", "expected ", first["msg"])
    return f"{field} {repr(first['input'])[:80]}: {wanted}"


def parse_prices(untrusted: Sequence[str]) -> dict[str, float]:
    """Return GPU -> price of an hour, from `h200=3.5` or the like; raise UsageError for anything else.

    A price of 0 is refused: it would make every other plan look wasteful. What is owned has a price, too.
    """
    found: dict[str, float] = {}
    for name, text in map(_pair, untrusted):
        try:
            price = float(text)
        except ValueError:
            price = -1.0
        if not LEAST_PRICE <= price <= 1e6:
            raise UsageError(f"price {text!r} of {name!r}: expected {LEAST_PRICE:f} to 1000000, for one GPU's hour")
        if name in found:
            raise UsageError(f"the price of {name!r} is given twice: expected once")
        found[name] = price
    return found


def _pair(text: str) -> tuple[str, str]:
    name, found, price = text.partition("=")
    if not found or not name.strip():
        raise UsageError(f"price {text!r}: expected GPU=PRICE, for example h200=3.5")
    return name.strip(), price.strip()
