"""Predicts what kernels are worth in a model, from their own evidence and the model's own functions."""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field

from forge.domain.model_measurement import ModelMode
from forge.lookup import Evidence

LEAST_LEFT = 0.01
"""Least share of a step that a prediction leaves: a model's process may claim any share."""


class FunctionShare(BaseModel):
    """The model's own function at the calls that one kernel replaces; a claim of the model's process."""

    model_config = ConfigDict(frozen=True, strict=True)
    op: str
    kernel_id: str | None
    """None where the adopted side takes the fallback."""
    share: float = Field(ge=0, le=1)
    """Share of a step's time, measured in eager mode."""
    calls: float = Field(ge=0)
    """Number of calls in a step."""


def predicted_speedup(
    mode: ModelMode, own_ns: float, shares: Iterable[FunctionShare], evidence: Mapping[str, Evidence]
) -> float:
    """Return the speedup that follows; `own_ns` is a step's time with the own functions, in nanoseconds.

    In eager mode a kernel's own time takes the place of the function's share. A compiler makes the function as fast
    as the kernel's baseline. So there each call saves the difference between baseline and kernel.
    """
    saved_ns = 0.0
    for one in shares:
        if one.kernel_id is None or one.kernel_id not in evidence:
            continue
        known = evidence[one.kernel_id]
        replaced_ns = one.share * own_ns if mode == "eager" else one.calls * known.baseline_median_ns
        saved_ns += replaced_ns - one.calls * known.median_ns
    return 1 / max(LEAST_LEFT, 1 - saved_ns / own_ns)
