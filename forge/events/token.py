"""Tokens: a person lets a program ask this workspace over HTTP or MCP, and takes that back."""

from typing import Literal

from forge.domain.digest import Digest
from forge.events.fact import Fact

Scope = Literal["author", "operator"]
"""What a token lets its holder do: an author submits candidates, an operator acts for the person who granted it."""


class TokenGranted(Fact):
    """A person made a token. The token itself is shown once, to that person, and stored nowhere."""

    name: str
    """Name of the holder: an author's events have the actor `agent:<name>`, an operator's `cli:<name>`."""
    scope: Scope
    token_sha256: Digest
    """Digest of the token. A token has 256 random bits, so it can't be found from its digest."""
    expires_at: str | None
    """Time in UTC after which the token is refused; null for a token without an end."""


class TokenRevoked(Fact):
    """A person took a token back. It is refused from then on."""

    name: str
    token_sha256: Digest
    """Digest of the token."""
