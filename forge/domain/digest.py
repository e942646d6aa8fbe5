"""How a thing is named by its content: canonical bytes and SHA-256.

Digests are taken over stored bytes. `canonical` is for writing; nothing re-serialises in order to verify.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from forge.domain.content import canonical_document, sha256

__all__ = ["Digest", "Value", "canonical", "digest_of", "is_empty", "is_false", "is_unset", "sha256"]

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 in lower-case hex."""


class Value(BaseModel):
    """A frozen value: no unknown fields, no NaN or infinity, equal when its content is equal.

    A class's validator is built at its first use: a command uses a few of a hundred classes.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_default=True,
        hide_input_in_errors=False,
        defer_build=True,
    )


def is_unset(found: object) -> bool:
    """Return True for None. A field that was added to an event is left out if it is unset, so old payloads stay."""
    return found is None


def is_false(found: object) -> bool:
    """Return True for False. A field that was added to an event is left out if it is False."""
    return found is False


def is_empty(found: object) -> bool:
    """Return True for an empty tuple. A field that was added to an event is left out if it is empty."""
    return found == ()


def canonical(value: Value | Mapping[str, object] | list[object]) -> bytes:
    """Render a validated value as the one JSON text that stands for it: sorted keys, no spaces, UTF-8."""
    return canonical_document(value.model_dump(mode="json") if isinstance(value, Value) else value)


def digest_of(value: Value | Mapping[str, object] | list[object]) -> Digest:
    """Name a value by the SHA-256 of its canonical bytes."""
    return sha256(canonical(value))
