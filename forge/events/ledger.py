"""The ledger's own events."""

from typing import ClassVar, Literal

from pydantic import Field

from forge.domain.digest import Digest
from forge.events.fact import Fact


class LedgerOpened(Fact):
    """The first event: a new, empty history begins."""

    TYPE: ClassVar[str] = "LedgerOpened"
    ledger_id: str
    origin: str
    """A name for people; free of host names unless the user gives one."""
    format: Literal["forge.ledger.v1"] = "forge.ledger.v1"
    forge_version: str
    public_key: str | None = None
    """Ed25519, base64, of the key that signs this ledger's checkpoints."""

    def stream(self) -> str:
        """The ledger's own stream."""
        return f"ledger:{self.ledger_id}"


class CheckpointPublished(Fact):
    """The ledger's size and root were signed and given out."""

    TYPE: ClassVar[str] = "CheckpointPublished"
    ledger_id: str
    size: int = Field(ge=1)
    """How many events it covers: those before this one."""
    root_hash: Digest
    """Of the Merkle tree (RFC 6962) over the hashes of these events."""
    note: str
    """The signed note (C2SP tlog-checkpoint), as it was given out."""

    def stream(self) -> str:
        """The ledger's own stream."""
        return f"ledger:{self.ledger_id}"


class LedgerKeyAdopted(Fact):
    """A key begins to sign this ledger's checkpoints, and no earlier key vouches for it.

    For a ledger that had none, or whose key was lost: a person decides that. Who trusts an earlier key must be told.
    """

    TYPE: ClassVar[str] = "LedgerKeyAdopted"
    ledger_id: str
    public_key: str
    """Ed25519, base64."""

    def stream(self) -> str:
        """The ledger's own stream."""
        return f"ledger:{self.ledger_id}"


class LedgerKeyRotated(Fact):
    """The key that signs this ledger's checkpoints names its successor."""

    TYPE: ClassVar[str] = "LedgerKeyRotated"
    ledger_id: str
    public_key: str
    """The successor: Ed25519, base64."""
    note: str
    """A signed note (C2SP) by the old key; its text names the log, the old verifier key and the successor's."""

    def stream(self) -> str:
        """The ledger's own stream."""
        return f"ledger:{self.ledger_id}"


class LedgerRestored(Fact):
    """A copy of the ledger goes on from a backup: a new epoch begins.

    The same backup may be restored twice, or its ledger may go on elsewhere: each continuation has its own event
    here, so that from this place on no two of them have the same hashes.
    """

    TYPE: ClassVar[str] = "LedgerRestored"
    ledger_id: str
    from_size: int = Field(ge=1)
    """How many events came with the backup: those before this one."""
    root_hash: Digest
    """Of the Merkle tree over the hashes of these events."""
    epoch: str
    """A random name for this continuation."""
    signed_size: int = Field(ge=0)
    """What the signer had signed when this was restored; more than `from_size` if signed events were lost."""

    def stream(self) -> str:
        """The ledger's own stream."""
        return f"ledger:{self.ledger_id}"


class LedgerImported(Fact):
    """Another ledger's events were taken in as evidence, word for word, beside this ledger's own."""

    TYPE: ClassVar[str] = "LedgerImported"
    ledger_id: str
    """This ledger."""
    foreign_ledger_id: str
    origin: str
    """The name that the other ledger gives itself."""
    first_seq: int = Field(ge=1)
    """The first of the other ledger's events that are new here."""
    size: int = Field(ge=1)
    """How many of its events are here now."""
    root_hash: Digest
    """Of the other ledger's Merkle tree at that size."""
    head_hash: Digest
    """Its last event's hash at that size."""
    note: str
    """The other ledger's signed checkpoint (C2SP tlog-checkpoint) of that size."""
    verifier_key: str
    """The key that the note was checked with."""
    bundle_sha256: Digest
    """The file that they came in."""

    def stream(self) -> str:
        """The ledger's own stream."""
        return f"ledger:{self.ledger_id}"
