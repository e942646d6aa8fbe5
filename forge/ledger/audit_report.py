"""What an audit answers with."""

from dataclasses import dataclass

PROBLEM_LIMIT = 1000
"""An audit stops reading rows after so many problems: the first ones are what helps."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that isn't what it was recorded to be."""

    seq: int | None
    """The event it concerns; None for the file as a whole."""
    what: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Everything an audit found; `ok` means that nothing was wrong."""

    ok: bool
    events: int
    head: str | None
    """The last event's hash, to be compared with one kept elsewhere: truncation doesn't show otherwise."""
    problems: tuple[Problem, ...]
