"""The early stop of a benchmark: the figures of a first process pair that leave no chance of a promotion.

A stop can only end in a refusal. It is never part of a promotion's evidence.
"""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Digest, Value
from forge.domain.evidence import Positive
from forge.domain.policy import BaselineKind, TimingAuthority
from forge.domain.tensors import Shape

LIMIT = 0.8
"""Ratio of baseline to candidate that the most favourable reading must stay below. A pair counts as lost at 1; the
distance covers what a whole process can differ by: 1.06x at most in 105 pairs on an H200, more on a processor."""


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
    best_round: Positive
    """Largest such ratio of a round."""
    control_spread: Annotated[float, Field(ge=1)]
    """Largest ratio of a round, or its inverse, of the control baseline to itself."""
    most_favourable: Positive
    """`best_round` times `control_spread`: the candidate's best round, with the largest noise in its favour."""
    limit: Positive
    """Ratio that `most_favourable` must be below."""
    rounds: Annotated[int, Field(ge=1)]
    gpu_s: Positive | None
    """Device time of this pair in seconds, all sides together. None: timed by the host's clock."""
    samples_sha256: Digest
    """Digest of all raw samples, as the run stores them."""
