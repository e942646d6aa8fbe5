"""What an audit answers with."""

from dataclasses import dataclass
from typing import Literal

PROBLEM_LIMIT = 1000
"""An audit stops reading rows after so many problems, unless it is asked for all: the first ones are what helps."""

Verdict = Literal["consistent", "other_ledger", "not_signed", "truncated", "rewritten"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that isn't what it was recorded to be."""

    seq: int | None
    """The event it concerns; None for the file as a whole."""
    what: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class CheckpointVerdict:
    """How the ledger stands to a checkpoint that was kept elsewhere."""

    verdict: Verdict
    """`consistent`: the ledger is that one, or its continuation."""
    origin: str
    size: int
    root: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Everything an audit found; `ok` means that nothing was wrong."""

    ok: bool
    events: int
    head: str | None
    """The last event's hash."""
    root: str | None
    """Of the Merkle tree over all events: with `events`, what a checkpoint signs."""
    signed: int
    """How many of the events the newest sound checkpoint in the ledger covers; 0 without any."""
    checkpoint: CheckpointVerdict | None
    """About the one that was given; truncation and rewrites don't show otherwise."""
    problems: tuple[Problem, ...]
    imported: int = 0
    """How many events of other ledgers stand beside its own."""
