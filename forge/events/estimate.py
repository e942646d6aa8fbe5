"""Estimates: a few samples that tell an author whether a benchmark is worth its minutes. They are never evidence."""

from typing import Annotated

from pydantic import Field

from forge.domain.digest import Digest, Value
from forge.domain.policy import BaselineKind
from forge.events.fact import Fact

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class AgainstBaseline(Value):
    """What the samples show of one baseline and the candidate."""

    baseline: BaselineKind
    baseline_ns: Positive
    candidate_ns: Positive
    ratios: tuple[Positive, ...]
    """Ratio of the baseline's time to the candidate's, for each process pair."""


class SpeedupEstimated(Fact):
    """A verified candidate was timed for a few seconds: two process pairs, few rounds, cold operands only.

    No decision reads this event. Only a benchmark is evidence of a speedup.
    """

    task_id: str
    candidate: Digest
    against: Annotated[tuple[AgainstBaseline, ...], Field(min_length=1)]
    control: tuple[Positive, ...]
    """Ratio of the eager baseline to itself, for each process pair: what the machine shows without any difference."""
    left_out: tuple[str, ...]
    """Baselines of the policy that weren't timed."""
    env_sha256: Digest
