"""The ledger's own events."""

from typing import ClassVar, Literal

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
