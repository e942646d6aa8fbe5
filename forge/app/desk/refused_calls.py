"""Keeps calls on record that a caller had no right to make: one event for each caller, matter and hour.

A caller without a token has no name to record, and is told the reason alone.
"""

from collections import Counter
from dataclasses import dataclass, field

from forge.app.access.tokens import Caller
from forge.app.workspace import now
from forge.domain.digest import sha256
from forge.errors import ActorForbidden, ForgeError, NotFound

MOST_OF_A_CALLER = 50
"""Largest number of refused calls of one caller that a server records in an hour: one can't use up the others'."""
MOST_OF_ALL = 1000
"""Largest number of refused calls that one server records in an hour, so that they can't fill the ledger."""


class _OfCaller(ForgeError):
    """An error that names the caller who lacks a right."""

    def __init__(self, message: str, *, caller: Caller, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.caller = caller


class NotAllowed(_OfCaller, ActorForbidden):
    """A caller asked for a change that isn't its to make."""


class NotShown(_OfCaller, NotFound):
    """A caller asked for what it may not see."""


LACKING_RIGHTS = (NotAllowed, NotShown)
"""Errors that say that a caller lacks a right."""


@dataclass
class RefusedCalls:
    """The calls that were recorded in this hour."""

    _hour: str = ""
    _known: set[str] = field(default_factory=set)
    _counts: Counter[str] = field(default_factory=Counter)

    def take(self, caller: Caller, error: ForgeError) -> str | None:
        """Return the key under which a refused call is recorded; None if it needs no further event."""
        if caller.scope == "reader":
            return None
        hour = now().strftime("%Y-%m-%dT%H")
        if hour != self._hour:
            self._hour, self._known, self._counts = hour, set(), Counter()
        key = sha256(f"{hour} {caller.actor} {error.code} {error.message}".encode(errors="replace"))
        is_full = self._counts[caller.actor] >= MOST_OF_A_CALLER or len(self._known) >= MOST_OF_ALL
        if key in self._known or is_full:
            return None
        self._known.add(key)
        self._counts[caller.actor] += 1
        return f"refused:call:{key}"
