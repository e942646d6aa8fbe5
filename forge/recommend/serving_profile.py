"""Measured serving profiles from outside. They replace estimates for exactly what they were measured on."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import orjson
from pydantic import Field, StringConstraints, ValidationError, model_validator

from forge.domain.digest import Value
from forge.errors import UsageError
from forge.platforms import find_processor
from forge.recommend.models import find_model
from forge.recommend.quantization import Backend, Quantization
from forge.recommend.request import Name, Positive, Tokens, Traffic, told

PROFILES_LIMIT = 100_000
"""Largest number of profiles in one file. Chosen; each profile is compared with every plan, so a larger file costs
time."""
Text = Annotated[str, StringConstraints(max_length=400)]


class ServingProfile(Value):
    """A measurement of one deployment under one traffic."""

    model: Name
    gpu: Name
    gpus: Annotated[int, Field(gt=0, le=1024)] = 1
    backend: Backend
    quantization: Quantization
    prompt_tokens: Tokens
    output_tokens: Annotated[int, Field(ge=0, le=10**9)]
    concurrency: Annotated[int, Field(gt=0, le=100_000)]
    ttft_ms_p50: Positive
    ttft_ms_p95: Positive | None = None
    tpot_ms_p50: Positive | None = None
    """Milliseconds of each further token. None: nothing is generated."""
    tpot_ms_p95: Positive | None = None
    throughput_tok_s: Positive
    """Tokens of all requests together: output tokens, or prompt tokens if nothing is generated."""
    memory_gb: Positive | None = None
    """Filled on each GPU."""
    measured_by: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """Person or program that measured, the date and the tool. It is shown wherever the numbers are shown."""
    notes: Text = ""

    @model_validator(mode="after")
    def _consistent(self) -> "ServingProfile":
        for name, low, high in (
            ("ttft", self.ttft_ms_p50, self.ttft_ms_p95),
            ("tpot", self.tpot_ms_p50, self.tpot_ms_p95),
        ):
            if high is not None and (low is None or high < low):
                raise ValueError(f"{name}_ms_p95 {high!r} lies below the median {low!r}: expected at least that")
        if (self.output_tokens > 0) != (self.tpot_ms_p50 is not None):
            raise ValueError("tpot_ms_p50 is expected exactly where output_tokens is more than 0")
        if not (self.measured_by + self.notes).isprintable():
            raise ValueError("measured_by and notes are expected on one line each, of printable characters")
        return self

    @property
    def traffic(self) -> Traffic:
        """What was served while it was measured."""
        return Traffic(
            prompt_tokens=self.prompt_tokens, output_tokens=self.output_tokens, concurrency=self.concurrency
        )


def parse_serving_profiles(untrusted: bytes, *, source: str) -> tuple[ServingProfile, ...]:
    """Return the profiles of a JSON list, with the full names of models and GPUs; raise UsageError otherwise."""
    try:
        orjson.loads(untrusted)  # refuses what the other parser lets pass: infinity, deep nesting
        document = json.loads(untrusted, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source!r} isn't JSON: {error}; expected a list of profiles") from error
    if not isinstance(document, list) or not document or len(document) > PROFILES_LIMIT:
        raise UsageError(f"{source!r}: expected a list of 1 to {PROFILES_LIMIT} profiles")
    return tuple(_parse(entry, f"{source}[{index}]") for index, entry in enumerate(document))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object with its names; raise ValueError if a name stands twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{twice[:80]!r} stands twice in one object")
    return found


def _parse(entry: object, where: str) -> ServingProfile:
    try:
        profile = ServingProfile.model_validate(entry)
    except ValidationError as error:
        raise UsageError(f"{where!r}: {told(error)}") from error
    try:
        model, processor = find_model(profile.model), find_processor(profile.gpu)
    except UsageError as error:
        raise UsageError(f"{where!r}: {error.message}") from error
    return profile.model_copy(update={"model": model.name, "gpu": processor.slug})


def check_distinct(profiles: Sequence[ServingProfile]) -> tuple[ServingProfile, ...]:
    """Return the profiles; raise UsageError if two are of the same deployment under the same traffic."""
    seen: set[tuple[object, ...]] = set()
    for one in profiles:
        key = (one.model, one.gpu, one.gpus, one.backend, one.quantization, one.traffic)
        if key in seen:
            raise UsageError(
                f"two profiles of {one.model!r} on {one.gpus} {one.gpu!r} with {one.backend}, {one.quantization} and "
                "the same traffic: expected one; leave out the older"
            )
        seen.add(key)
    return tuple(profiles)
