"""Defines the guest behind a loaded kernel: its process, the memory of its operands, and the function in it."""

from dataclasses import dataclass

from forge.sandbox.arena import Arena
from forge.sandbox.session import Session

FILLING = 0xA5
"""Byte with which C's allocator fills memory. Eight of them are no valid address or index."""
UNFILLED_SHARE = 0.25
"""Share of a verification's releases for which memory isn't filled before, as it never is for timed calls. Chosen; a
larger share would hide reads of unwritten memory."""


@dataclass(frozen=True)
class LoadedGuest:
    """A process that has loaded a function, and the arena that it shares with the host."""

    session: Session
    arena: Arena
    entry: str
    """Name of the function."""
    fills_memory: bool = False
    """Whether the guest's memory is filled before most calls, so that reads of unwritten memory show."""
    tunes: bool = False
    """Whether the host chooses among the function's configurations."""
