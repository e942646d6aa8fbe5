"""The early stop of a benchmark: the figures of a first process pair that leave no chance of a promotion.

A stop can only end in a refusal. It is never part of a promotion's evidence.
"""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Digest, Value
from forge.domain.evidence import Positive
from forge.domain.policy import BaselineKind, TimingAuthority
from forge.domain.tensors import Shape

LIMIT = 0.7
"""Ratio of baseline to candidate that the most favourable reading must stay below. A pair counts as lost at 1. The
distance covers what a whole process can differ by: at most 1.06x in 105 pairs on an H200, more on a processor."""
STANDARD_ERRORS = 4
"""Number of standard errors by which both medians of a pair are moved in the candidate's favour. Normal noise exceeds
that in one of 30,000 pairs."""


class EarlyStop(Value):
    """Figures of the first process pair of a run. The interval of a full benchmark needs more pairs."""

    rule: Literal["first_pair.v1"] = "first_pair.v1"
    """Name of the rule; another rule gets another name."""
    shape: Shape
    method: TimingAuthority
    protocol: str
    """Measurement protocol of the samples."""
    baseline: BaselineKind
    """Baseline that had to be beaten: the task's choice, else the fastest in this pair."""
    baseline_median_ns: Positive
    candidate_median_ns: Positive
    ratio: Positive
    """Median over the rounds of baseline time divided by candidate time."""
    error: Annotated[float, Field(ge=0)]
    """Standard error of the median's logarithm."""
    control: Positive
    """Median over the rounds of the control baseline's time divided by its own in another process."""
    control_error: Annotated[float, Field(ge=0)]
    """Standard error of the control's logarithm."""
    most_favourable: Positive
    """`ratio` with both standard errors four times, and the control's distance from 1, in the candidate's favour."""
    limit: Positive
    """Ratio that `most_favourable` must be below."""
    rounds: Annotated[int, Field(ge=1)]
    gpu_s: Positive | None
    """Device time of this pair in seconds, all sides together. None: timed by the host's clock."""
    samples_sha256: Digest
    """Digest of all raw samples, as the run stores them."""
