"""The terms of a session: the rules that end it, and the reason codes of its ends."""

from typing import Annotated, Literal

from pydantic import Field

from forge.domain.digest import Value

RoundEnd = Literal[
    "gain", "no_gain", "refused", "screened", "answered", "wish_refused", "finished", "budget", "withdrawn"
]
"""Reasons with which a round ends."""
SessionEnd = Literal["budget", "no_gain", "near_floor", "divergence", "nothing_left", "rounds", "withdrawn"]
"""Reasons with which a session ends."""
WishKind = Literal["gate_off", "tolerance", "budget", "held_out", "resume", "other"]
"""Kind of a wish: a gate turned off, another tolerance, more budget, held-out shapes, a second process in one
session, or something else."""


REPEATS = 3
"""Number of repeated phases of one candidate, at most, unless a session has other terms. Noise passes in minutes."""


class SessionTerms(Value):
    """When a session ends by itself, and what is reserved for its requests."""

    rounds_without_gain: Annotated[int, Field(ge=1)] = 5
    """Number of rounds in a row with candidates and without a gain, after which the session ends."""
    refused_rounds: Annotated[int, Field(ge=1)] = 5
    """Number of rounds in a row in which every candidate was refused, after which the session ends."""
    floor_share: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Share of the shortest possible time: a promoted kernel that reaches it leaves hardly anything to gain."""
    rounds: Annotated[int, Field(ge=1)] = 1000
    """Largest number of rounds. It ends an author that asks without end for what costs nothing."""
    repeats: Annotated[int, Field(ge=0, le=100)] = Field(default=REPEATS, exclude_if=lambda count: count == REPEATS)
    """Number of a candidate's phases that are run again, at most: after a fault of the machine, or a benchmark
    without a decision."""
    workers: Annotated[int, Field(ge=0, le=64)] = Field(default=0, exclude_if=lambda count: count == 0)
    """Number of candidates of one step that workers judge at the same time. 0: the session's process judges."""
    candidate_ms: Annotated[int, Field(ge=1)] = 600_000
    """Time that is reserved for one candidate, in milliseconds. A slow compiler and noise take some minutes."""
    draft_ms: Annotated[int, Field(ge=1)] = 60_000
    """Time that is reserved for each draft of a screening, in milliseconds."""
