"""Notes that commands print if the workspace lacks the key that signs its ledger."""

from collections.abc import Mapping, Sequence

from forge.cli.output import say

NEW_KEY = "forge ledger key import FILE imports it, forge ledger checkpoint --new-key makes another"
"""Hint with the two ways to get a signing key."""


def say_if_unsigned(decided: Mapping[str, object]) -> None:
    """Print a note if no checkpoint covers a decision, because the private key isn't here."""
    if decided["signed_size"] is None:
        say(f"note: the private key isn't here, so event {decided['seq']} is unsigned: {NEW_KEY}")


def say_unvouched(adoptions: Sequence[int]) -> None:
    """Name the events that adopted a signing key for which no earlier key vouches."""
    if adoptions:
        events = ", ".join(map(str, adoptions))
        say(
            f"note: no earlier key vouches for the {'key' if len(adoptions) == 1 else 'keys'} adopted at event "
            f"{events}; trust the newest key only if its owner gave it to you by another channel"
        )
