"""The closed list of reasons for a refusal. It loads no models."""

from typing import Literal, get_args

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
