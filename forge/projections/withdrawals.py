"""Checks that a withdrawal in the ledger is one: of a kernel or benchmark before it, on evidence that exists."""

from forge.errors import LedgerCorrupt
from forge.events import Event, Recorded
from forge.events.benchmark import BenchmarkInvalidated, BenchmarkRecorded
from forge.events.promote import KernelDeprecated, KernelRevoked
from forge.projections.fold import Source, holds
from forge.projections.state import Row, State

_EVENT = "event:"
"""Beginning of a piece of evidence that names an event: its place and its hash follow, each after a colon."""
_SLOT = ("op", "gpu", "dtype")
"""Columns of a kernel's slot, which its successor must share."""


def require_successor(state: State, recorded: Recorded[KernelDeprecated]) -> None:
    """Raise LedgerCorrupt unless the successor, if one is named, is another promoted kernel of the same slot.

    Whether it was active then isn't checked: its standing may change between the decision and its record.
    """
    successor = recorded.event.superseded_by
    if successor is None:
        return
    own, found = state.get("kernels", recorded.event.kernel_id), state.get("kernels", successor)
    if successor == recorded.event.kernel_id:
        raise _corrupt(recorded, "the kernel itself as its successor")
    if found is None:
        raise _corrupt(recorded, f"the successor {successor!r}, which wasn't promoted before it")
    if own is not None and _slot_of(found) != _slot_of(own):
        raise _corrupt(recorded, f"the successor {successor!r} for {_slot_of(found)}, expected {_slot_of(own)}")


def require_evidence(recorded: Recorded[KernelRevoked], source: Source) -> None:
    """Raise LedgerCorrupt unless each event that a revocation names as evidence is before it and has that hash."""
    for piece in recorded.event.evidence:
        if not piece.startswith(_EVENT):
            continue
        place, _, event_hash = piece.removeprefix(_EVENT).partition(":")
        seq = int(place) if place.isascii() and place.isdecimal() and len(place) <= len(str(recorded.seq)) else 0
        if not 0 < seq < recorded.seq or source.hash_at(seq) != event_hash:
            raise _corrupt(recorded, f"the evidence {piece[:100]!r}, which is no event before it")


def require_benchmark(recorded: Recorded[BenchmarkInvalidated], source: Source) -> None:
    """Raise LedgerCorrupt unless the actor withdraws an earlier benchmark of the named candidate."""
    seq = recorded.event.benchmark_seq
    found = source.event_at(seq) if 0 < seq < recorded.seq else None
    if not holds(found, BenchmarkRecorded) or found.event.candidate != recorded.event.candidate:
        raise LedgerCorrupt(
            f"event {recorded.seq} withdraws event {seq}: expected an earlier benchmark of candidate "
            f"{recorded.event.candidate!r}"
        )
    if recorded.event.by != recorded.actor:
        raise _corrupt(recorded, f"{recorded.event.by!r} as the one who decided; {recorded.actor!r} recorded it")


def _slot_of(row: Row) -> str:
    return " ".join(str(row[name]) for name in _SLOT)


def _corrupt(recorded: Recorded[Event], found: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"event {recorded.seq} ({recorded.event.TYPE}) names {found}")
