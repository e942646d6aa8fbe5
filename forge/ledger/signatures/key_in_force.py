"""Folds which key signs a ledger's checkpoints, from events as documents. It loads no models."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from forge.ledger.signatures.signing import log_name, verifier_key

KEY_EVENTS = ("LedgerOpened", "LedgerKeyAdopted", "LedgerKeyRotated")
"""Types of events that bring a key into force."""


@dataclass(frozen=True, slots=True)
class SigningState:
    """What the ledger records about its signing."""

    name: str
    """The log's name: the origin line of its checkpoints."""
    public: bytes | None
    """The key in force; None if there never was one."""
    unvouched: tuple[int, ...] = ()
    """The events that brought a key into force that the key before it did not name."""

    @property
    def verifier(self) -> str | None:
        """Return the key in force in the form that verifiers need."""
        return None if self.public is None else verifier_key(self.name, self.public)


def key_in_force(events: Iterable[tuple[int, str, Mapping[str, Any]]]) -> SigningState:
    """Return the log's name and the key in force after events of `KEY_EVENTS`: place, type and document of each."""
    name, public, unvouched = "", None, list[int]()
    for seq, type_name, event in events:
        match type_name:
            case "LedgerOpened":
                name = log_name(event["origin"], event["ledger_id"])
            case "LedgerKeyAdopted":
                unvouched += [seq] if public is not None else []
            case "LedgerKeyRotated":
                pass
            case _:
                raise AssertionError(f"{type_name} says nothing of keys")
        public = _public(event["public_key"])
    return SigningState(name, public, tuple(unvouched))


def _public(encoded: str | None) -> bytes | None:
    return None if encoded is None else base64.b64decode(encoded)
