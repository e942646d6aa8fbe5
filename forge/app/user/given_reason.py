"""Checks the reason that a person gives for what is recorded. The ledger keeps it for ever."""

from forge.errors import UsageError

LONGEST = 500
"""Longest reason, in characters. Chosen; it is shown in a line or two."""


def require_reason(reason: str, *, longest: int = LONGEST) -> None:
    """Raise UsageError for a reason that is blank, too long, or has characters that can't be printed."""
    if not (reason.strip() and len(reason) <= longest and reason.isprintable()):
        raise UsageError(
            f"bad reason {reason[:longest]!r}: expected 1 to {longest} printable characters, not all spaces"
        )
