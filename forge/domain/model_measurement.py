"""What a measurement of a whole model is: the workload, the mode, and how the two sides compare."""

import re
from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Digest, Value
from forge.domain.evidence import Interval
from forge.domain.task import Name
from forge.errors import UnknownName, UsageError

ModelMode = Literal["eager", "compile", "graphs"]
"""How the model runs: as it is, by torch.compile, or by torch.compile and captured in a CUDA graph."""
MODES: tuple[ModelMode, ...] = ("eager", "compile", "graphs")
WorkloadKind = Literal["decode", "prefill"]
FIELDS: dict[WorkloadKind, tuple[str, ...]] = {"decode": ("b", "context"), "prefill": ("b", "tokens")}
"""Names of the sizes of a workload, by its kind."""
LARGEST_SIZE = 1 << 24
"""Largest batch or number of tokens, so that no workload's size overflows."""
GREEDY_STEPS = 64
"""Number of tokens that both sides choose greedily. Chosen; each costs one step of the whole model on both sides."""


class ModelWorkload(Value):
    """One step of a model: a token for each of `batch` sequences after `context` others, or `tokens` at once."""

    kind: WorkloadKind
    batch: Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
    context: Annotated[int, Field(ge=0, le=LARGEST_SIZE)]
    """Number of tokens of each sequence before the step."""
    tokens: Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
    """Number of tokens of each sequence in the step."""

    @property
    def text(self) -> str:
        """Return the workload as `parse_workload` reads it."""
        if self.kind == "decode":
            return f"decode:b={self.batch},context={self.context}"
        return f"prefill:b={self.batch},tokens={self.tokens}"


def parse_workload(untrusted: str) -> ModelWorkload:
    """Return the workload of `decode:b=16,context=1024` or `prefill:b=1,tokens=4096`; raise UsageError."""
    expected = "expected decode:b=16,context=1024 or prefill:b=1,tokens=4096, each number at least 1"
    kind, _, rest = untrusted.partition(":")
    if kind not in FIELDS:
        raise UnknownName("workload", kind, list(FIELDS))
    known: dict[str, WorkloadKind] = {name: name for name in FIELDS}
    sizes = dict(re.findall(r"(?:^|,)([a-z]+)=([0-9]{1,9})(?=,|$)", rest))
    wanted = FIELDS[known[kind]]
    text = ",".join(f"{name}={sizes.get(name, '')}" for name in wanted)
    numbers = {name: int(sizes[name]) for name in wanted if name in sizes}
    if text != rest or not all(1 <= number <= LARGEST_SIZE for number in numbers.values()):
        raise UsageError(f"bad workload {untrusted[:100]!r}: {expected}")
    context = numbers.get("context", 0)
    return ModelWorkload(kind=known[kind], batch=numbers["b"], context=context, tokens=numbers.get("tokens", 1))


def parse_mode(untrusted: str) -> ModelMode:
    """Return the mode of that name, or raise UnknownName."""
    for mode in MODES:
        if mode == untrusted:
            return mode
    raise UnknownName("mode", untrusted, list(MODES))


class AdoptedUse(Value):
    """One kind of calls of an adopted operation in one step of the model."""

    op: Name
    backend: Literal["plan", "source", "fallback"]
    kernel_id: str | None
    sha256: Digest | None
    """Digest of the kernel's source."""
    reason: str | None
    """Reason of a fallback."""
    hits: Annotated[int, Field(ge=1)]
    """Number of calls in the measured process until its report."""
    share: Annotated[float, Field(ge=0, le=1)]
    """Share of the step's time that the model's own function takes at these calls, measured in eager mode.

    Fallbacks of one operation have one share together."""
    speedup: Annotated[float, Field(gt=0)] | None
    """Speedup of the kernel in its own evidence, over its best baseline; None for a fallback."""


class ModelComparison(Value):
    """The two sides of a measurement, and how their answers compare. The model's own process says the latter."""

    speedup: Interval
    """Time of a step with the model's own functions over that with adopted kernels."""
    control: Interval
    """Time of a step with the own functions over that with the own functions once more."""
    own_median_ns: Annotated[float, Field(gt=0)]
    adopted_median_ns: Annotated[float, Field(gt=0)]
    own_error: Annotated[float, Field(ge=0)]
    """Largest difference of the logits from those of the model in fp32, over the largest logit."""
    adopted_error: Annotated[float, Field(ge=0)]
    equal_tokens: Annotated[int, Field(ge=0, le=GREEDY_STEPS)]
    """Number of greedy steps after which both sides first differ; all of them if they never do."""
    greedy_steps: Annotated[int, Field(ge=1, le=GREEDY_STEPS)]
    replaced_share: Annotated[float, Field(ge=0, le=1)]
    """Share of the step's time in the functions that promoted kernels replace."""
    predicted: Annotated[float, Field(gt=0)]
    """Speedup that follows from the kernels' own evidence, and in eager mode from that share."""
