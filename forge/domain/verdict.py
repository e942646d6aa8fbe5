"""The possible results of a judgement, and the closed list of reasons for a refusal."""

from typing import Literal, get_args

from forge.domain.digest import Value

ReasonCode = Literal[
    "COMPILE_ERROR",
    "RUNTIME_ERROR",
    "TIMEOUT",
    "OUT_OF_MEMORY",
    "INCORRECT_SHAPE",
    "INCORRECT_DTYPE",
    "INCORRECT_STRIDES",
    "INCORRECT_NUMERICAL",
    "NON_FINITE",
    "NON_DETERMINISTIC",
    "INPUT_MUTATED",
    "OUT_OF_BOUNDS",
    "WRONG_OUTSIDE_DOMAIN",
    "STATE_CARRIED",
    "STATIC_POLICY",
    "FALLBACK",
    "TAMPERING",
    "REPLAYED_OUTPUT",
    "CLOCK_DISAGREES",
    "BELOW_FLOOR",
    "TOO_SLOW",
    "NOT_REPLICATED",
    "NOISE_TOO_HIGH",
    "CLOCKS_UNSTABLE",
    "GPU_SHARED",
    "SANDBOX_VIOLATION",
    "RESOURCE_ABUSE",
    "BAD_SUBMISSION",
    "INFRASTRUCTURE",
]
REASON_CODES: tuple[ReasonCode, ...] = get_args(ReasonCode)

UNDECIDED: frozenset[ReasonCode] = frozenset(
    {"NOISE_TOO_HIGH", "CLOCKS_UNSTABLE", "GPU_SHARED", "CLOCK_DISAGREES", "INFRASTRUCTURE"}
)
"""Reasons that say nothing about the candidate. The result is `Inconclusive`, and another attempt is allowed."""


class Reason(Value):
    """Why something was refused: a code from the closed list and one sentence with the values."""

    code: ReasonCode
    message: str


class Accepted(Value):
    """The evidence supports the candidate."""

    verdict: Literal["accepted"] = "accepted"


class Rejected(Value):
    """The evidence speaks against the candidate."""

    verdict: Literal["rejected"] = "rejected"
    reason: Reason


class Inconclusive(Value):
    """No verdict, because of the machine or its noise and not because of the candidate."""

    verdict: Literal["inconclusive"] = "inconclusive"
    reason: Reason


Verdict = Accepted | Rejected | Inconclusive
