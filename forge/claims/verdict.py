"""The answers about a sentence that was checked against the evidence."""

from typing import Literal

from forge.domain.digest import Value

Problem = Literal[
    "no_evidence",
    "unknown_evidence",
    "taken_back",
    "no_verdict",
    "simulated",
    "overstated",
    "not_measured",
    "no_interval",
    "wrong_interval",
    "no_baseline",
    "wrong_baseline",
    "weak_baseline",
    "no_processor",
    "wrong_processor",
    "no_shape",
    "wrong_shape",
    "no_dtype",
    "wrong_dtype",
    "no_operation",
    "wrong_operation",
    "beyond_operation",
    "other_model",
    "best_case",
    "no_measure",
    "unreadable",
    "not_in_file",
]
"""Reasons why a sentence may not be said; docs/how-to/write-a-claim.md says what each asks for."""


class Fault(Value):
    """One thing that is wrong with a sentence."""

    problem: Problem
    why: str


def fault(problem: Problem, why: str) -> Fault:
    """Return a fault in one line."""
    return Fault(problem=problem, why=why)


class Flagged(Value):
    """A sentence that may not be said as it stands."""

    line: int
    sentence: str
    said: tuple[str, ...]
    """The words that are a claim."""
    faults: tuple[Fault, ...]
    instead: str
    """A sentence that would be true, or what to do."""


class Supported(Value):
    """A sentence that its evidence supports."""

    line: int
    sentence: str
    rests_on: tuple[str, ...]
    """Events and files."""


class SetAside(Value):
    """A sentence that its page says is no claim."""

    line: int
    sentence: str
    reason: str


class PageReport(Value):
    """Every sentence about speed on one page."""

    file: str
    flagged: tuple[Flagged, ...]
    supported: tuple[Supported, ...]
    set_aside: tuple[SetAside, ...]
