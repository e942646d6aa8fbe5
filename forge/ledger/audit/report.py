"""What an audit answers with."""

from dataclasses import dataclass
from typing import Literal

PROBLEM_LIMIT = 1000
"""An audit stops reading rows after so many problems, unless it is asked for all: the first ones are what helps."""

Verdict = Literal["consistent", "other_ledger", "not_signed", "truncated", "rewritten", "unreadable"]
KeyVerdict = Literal["vouched", "unvouched"]
Naming = Literal["opened", "rotated", "adopted"]


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
class KeyUse:
    """One key that the ledger names, and what it signed."""

    key: str
    seq: int
    """The event that names it."""
    how: Naming
    """`opened`: by the first event. `rotated`: the key before it signed that. `adopted`: no key signed that."""
    vouched: bool
    """False if there was a key before it and that key did not name it."""
    checkpoints: int
    first: int | None
    last: int | None
    """The events whose first recorded checkpoint is signed by this key; None without one."""


@dataclass(frozen=True, slots=True)
class Vouching:
    """What the trusted key stands for: it, and each key that was named by rotation from it on."""

    key: str
    verdict: KeyVerdict
    """`unvouched`: recorded checkpoints or decisions lie beyond the events that the key vouches for."""
    vouched_for: int
    """How many events, from the first one on, a checkpoint by one of these keys covers."""
    unvouched: int
    """How many events lie beyond."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint that lies beside the ledger: the published one, or what a key signed last."""

    where: str
    note: bytes
    of_this: bool
    """Whether it must be of this ledger; a folder of keys may serve several."""


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
    keys: tuple[KeyUse, ...] = ()
    """Every key that was named, in that order."""
    vouching: Vouching | None = None
    """About the key that was given."""
