"""What is said where a workspace lacks the key that signs its ledger."""

from collections.abc import Mapping

from forge.cli.output import say

NEW_KEY = "forge ledger checkpoint --new-key makes another"


def say_if_unsigned(decided: Mapping[str, object]) -> None:
    """Say that a decision stands in the ledger, and in no checkpoint."""
    if decided["signed_size"] is None:
        say(f"note: the private key isn't here, so event {decided['seq']} is unsigned: {NEW_KEY}")
