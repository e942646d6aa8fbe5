"""The ledger's own events."""

from typing import Literal

from pydantic import Field

from forge.domain.digest import Digest
from forge.events.fact import Fact


class LedgerOpened(Fact):
    """A new ledger was opened. This is its first event."""

    ledger_id: str
    origin: str
    """Name of the ledger, for people. It holds a host name only if the user gives one."""
    format: Literal["forge.ledger.v1"] = "forge.ledger.v1"
    forge_version: str
    public_key: str | None = None
    """Public key that signs this ledger's checkpoints: Ed25519, base64."""


class CheckpointPublished(Fact):
    """The ledger's size and root were signed and published."""

    ledger_id: str
    size: int = Field(ge=1)
    """Number of events that it covers: all before this one."""
    root_hash: Digest
    """Root of the Merkle tree (RFC 6962) over the hashes of these events."""
    note: str
    """Signed note (C2SP tlog-checkpoint), as it was published."""


class LedgerKeyAdopted(Fact):
    """A key begins to sign this ledger's checkpoints, and no earlier key vouches for it.

    A person decides this for a ledger that had no key, or whose key was lost. Readers that trust an earlier key must
    be told.
    """

    ledger_id: str
    public_key: str
    """Ed25519, base64."""


class LedgerKeyRotated(Fact):
    """The key that signs this ledger's checkpoints names its successor."""

    ledger_id: str
    public_key: str
    """Public key of the successor: Ed25519, base64."""
    note: str
    """Signed note (C2SP) by the old key. Its text names the log, the old verifier key and the successor's."""


class LedgerRestored(Fact):
    """A ledger was restored from a backup, and a new epoch begins.

    One backup may be restored twice, or the original ledger may grow elsewhere. Each continuation has its own event
    here, so their hashes differ from this position on.
    """

    ledger_id: str
    from_size: int = Field(ge=1)
    """Number of events in the backup: all before this one."""
    root_hash: Digest
    """Root of the Merkle tree over the hashes of these events."""
    epoch: str
    """Random name of this continuation."""
    signed_size: int = Field(ge=0)
    """Number of events that the signer had signed before the restore. It exceeds `from_size` if signed events were
    lost."""


class LedgerImported(Fact):
    """Another ledger's events were imported as evidence, unchanged, beside this ledger's own."""

    ledger_id: str
    """Id of this ledger."""
    foreign_ledger_id: str
    origin: str
    """Name that the other ledger gives itself."""
    first_seq: int = Field(ge=1)
    """Sequence number of the first of the other ledger's events that is new here."""
    size: int = Field(ge=1)
    """Number of its events that are here now."""
    root_hash: Digest
    """Root of the other ledger's Merkle tree at that size."""
    head_hash: Digest
    """Hash of its last event at that size."""
    note: str
    """Signed checkpoint (C2SP tlog-checkpoint) of the other ledger at that size."""
    verifier_key: str
    """Verifier key that the note was checked with."""
    bundle_sha256: Digest
    """Digest of the bundle file that held the events."""
