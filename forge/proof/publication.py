"""The note that a key signs for a published registry: the digest of its snapshot and the event that it is as of.

The snapshot is derived and isn't in the Merkle tree, so the pointer to it has a signed note of its own. The note's
first line is no log's name, so it can't be taken for a checkpoint.
"""

from forge.errors import ProofRefused, UsageError
from forge.proof.note import VerifierKey, opened, parse_note

PUBLICATION = "forge.ledger.v1/publication"
"""First line of the note."""
AGAIN = "forge ledger checkpoint"
"""Command that signs the newest events and publishes again. It needs the private key."""


def publication_text(name: str, *, seq: int, event_hash: str, sha256: str) -> str:
    """Return the text that the log's key signs; `sha256` is the snapshot's digest."""
    return f"{PUBLICATION}\n{name}\n{seq}\n{event_hash}\n{sha256}\n"


def require_vouched(
    untrusted_note: object, key: VerifierKey, *, ledger_id: str, seq: int, event_hash: str, sha256: str
) -> None:
    """Raise ProofRefused unless `key` signed exactly this publication."""
    if not isinstance(untrusted_note, str):
        raise ProofRefused(
            f"the publication at event {seq} isn't signed, expected a note by {key}: publish it again where the "
            "private key is",
            hint=AGAIN,
        )
    try:
        found = opened(parse_note(untrusted_note.encode()), [key])
    except (ProofRefused, UsageError, ValueError) as error:
        raise ProofRefused(
            f"the key {key} doesn't vouch for the publication at event {seq} ({error}). If the key was replaced, "
            "pin the one that its owner names. Otherwise publish it again where the private key is",
            hint=AGAIN,
        ) from error
    wanted = publication_text(key.name, seq=seq, event_hash=event_hash, sha256=sha256)
    if found != wanted or key.name.rpartition("/")[2] != ledger_id:
        raise ProofRefused(
            f"the key {key} signed another publication, not that of ledger {ledger_id} at event {seq} with snapshot "
            f"{sha256}: it was altered. Publish it again where the private key is",
            hint=AGAIN,
        )
