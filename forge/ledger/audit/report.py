"""Values that an audit returns."""

from dataclasses import dataclass
from typing import Literal

PROBLEM_LIMIT = 1000
"""Number of problems after which an audit stops reading rows, unless all are asked for. The first ones show the
cause."""

MALFORMED_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions that reading a document of another form raises."""

Verdict = Literal["consistent", "other_ledger", "not_signed", "truncated", "rewritten", "unreadable"]
"""Result of comparing a ledger with a checkpoint."""
KeyVerdict = Literal["vouched", "unvouched"]
Naming = Literal["opened", "rotated", "adopted"]
"""Ways in which a key comes into force."""


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """One difference between the ledger and what was recorded or derived."""

    seq: int | None
    """The event with the problem; None if it concerns the whole file."""
    what: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class CheckpointVerdict:
    """The comparison of the ledger with a checkpoint that was kept elsewhere."""

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
    """Sequence number of the event that names the key."""
    how: Naming
    """Way in which the key came into force. `opened`: by the first event. `rotated`: the key before it signed that.
    `adopted`: no key signed that."""
    vouched: bool
    """False if an earlier key exists and didn't name this one."""
    checkpoints: int
    first: int | None
    last: int | None
    """First and last event whose first recorded checkpoint is signed by this key; None without one."""


@dataclass(frozen=True, slots=True)
class Vouching:
    """The events that the trusted key vouches for, by itself or by a key that it leads to by rotations."""

    key: str
    verdict: KeyVerdict
    """`unvouched`: there are recorded checkpoints or decisions after the events that the key vouches for."""
    vouched_for: int
    """Number of events, from the first one, that a checkpoint by one of these keys covers."""
    unvouched: int
    """Number of events after those that the key vouches for."""


@dataclass(frozen=True, slots=True)
class KeptCheckpoint:
    """A checkpoint beside the ledger: the published one, or the last one that a key signed."""

    where: str
    note: bytes
    of_this: bool
    """True if it must be of this ledger; a folder of keys may serve several ledgers."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit; `ok` means that there are no problems."""

    ok: bool
    events: int
    head: str | None
    """The last event's hash."""
    root: str | None
    """Root of the Merkle tree over all events; a checkpoint signs it together with `events`."""
    signed: int
    """Number of events that the newest sound checkpoint in the ledger covers; 0 without one."""
    checkpoint: CheckpointVerdict | None
    """Comparison with the given checkpoint; only such a comparison shows truncation and rewrites."""
    problems: tuple[AuditProblem, ...]
    imported: int = 0
    """Number of events of other ledgers that were imported."""
    keys: tuple[KeyUse, ...] = ()
    """The keys in the order in which the ledger names them."""
    vouching: Vouching | None = None
    """Part of the history that the given key vouches for."""
