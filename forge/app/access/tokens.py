"""Tokens: lets a program ask over HTTP or MCP as an author or as an operator, until it expires or is revoked.

A token is shown once and stored nowhere. It is accepted while its event stands and its file is in this workspace.
Only the file's owner can read it. So a copy of the ledger alone accepts no token.
"""

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal, get_args

import orjson
from pydantic import ValidationError

from forge.app.access.token_list import is_past, token_file, tokens_folder, tokens_of
from forge.app.plain_events import OfWorkspace
from forge.app.user.home import TOKEN_VARIABLE
from forge.app.user.user_paths import read_regular
from forge.app.workspace import Workspace, now
from forge.authors import KIND_NAMES
from forge.domain.digest import Digest, Value, canonical, sha256
from forge.errors import IntegrityError, TokenRefused, UnknownName, UsageError
from forge.events import TokenGranted, TokenRevoked
from forge.events.token import Scope
from forge.ledger.durable import make_folder, write_durably

Data = dict[str, object]
PREFIX = "forge_"
"""Beginning of every token, so that scanners for secrets know it."""
RANDOM_BYTES = 32
"""Number of random bytes in a token: too many to be found from a digest."""
LONGEST_TOKEN = 100
"""Largest length of a token that is looked up, in characters. A token has 49, so a longer text isn't hashed."""
NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?", re.ASCII)
"""Pattern of the name of a token's holder."""
TAKEN_NAMES = frozenset({*KIND_NAMES, "composer", "mcp"})
"""Names that Forge's own programs and the authors of sessions write as. A token's holder would own their runs."""
LIFETIME = re.compile(r"([1-9][0-9]{0,3})([hdw])", re.ASCII)
"""Pattern of the time until a token expires: a number of hours, days or weeks."""
UNITS: dict[str, timedelta] = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
"""Letter in a lifetime -> its unit of time."""
FILE_LIMIT_BYTES = 4096
"""Largest file of a token that is read, in bytes; one has some 150."""
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
"""Modes of a token's file and of their folder: only their owner may read them."""


class _Kept(Value):
    """The content of a token's file."""

    name: str
    scope: Scope
    expires_at: str | None


@dataclass(frozen=True, slots=True)
class Caller:
    """A program or a person that asks over HTTP or MCP."""

    scope: Literal["reader", "author", "operator"]
    """`reader` is a caller without a token, who changes nothing."""
    name: str = ""
    token_sha256: Digest | None = field(default=None, compare=False)
    """Digest of the token that was given. None: there was none, so none is looked up again."""

    @property
    def actor(self) -> str:
        """Return the actor of the caller's events. A reader has none."""
        assert self.scope != "reader", "a reader writes nothing"
        return f"{'agent' if self.scope == 'author' else 'cli'}:{self.name}"


READER = Caller("reader")
AGENT_WITHOUT_TOKEN = Caller("author", "mcp")
"""Caller over MCP on standard input and output without a token: a program that the user started, never a person."""


def grant_token(
    workspace: Workspace, untrusted_name: str, *, untrusted_scope: str, untrusted_lifetime: str | None
) -> Data:
    """Make a token, record it, and return it with its text, which is kept nowhere else.

    Raises UnknownName for a scope that doesn't exist.
    """
    scopes: dict[str, Scope] = {one: one for one in get_args(Scope)}
    if untrusted_scope not in scopes:
        raise UnknownName("scope", untrusted_scope, list(scopes))
    scope = scopes[untrusted_scope]
    expires_at = None if untrusted_lifetime is None else (now() + _lifetime(untrusted_lifetime)).isoformat()
    token = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    digest = sha256(token.encode())
    _require_name(untrusted_name)
    folder = tokens_folder(workspace.home)
    make_folder(folder)
    folder.chmod(PRIVATE_FOLDER)
    with _alone(folder):  # from the look for the name until the event that takes it
        name = _free_name(workspace, untrusted_name)
        granted = TokenGranted(name=name, scope=scope, token_sha256=digest, expires_at=expires_at)
        workspace.append((granted,), run_id=granted.stream(), key=f"grant:{digest}")
    kept = _Kept(name=name, scope=scope, expires_at=expires_at)
    write_durably(token_file(workspace.home, digest), canonical(kept), mode=PRIVATE_FILE)
    return {"name": name, "scope": scope, "expires_at": expires_at, "token_sha256": digest, "token": token}


def revoke_token(workspace: Workspace, name: str) -> Data:
    """Take back the token with this name: it is refused from the next request on.

    In a ledger of a Forge before the lock of `grant_token`, several tokens may have the name: all are taken back.
    Raises UnknownName if no token has it.
    """
    standing = [one for one in all_tokens(workspace) if one["state"] != "revoked"]
    named = [one for one in standing if one["name"] == name]
    if not named:
        raise UnknownName("token", name, [str(one["name"]) for one in standing], listed_by="forge token list")
    for one in named:
        digest = str(one["token_sha256"])
        revoked = TokenRevoked(name=name, token_sha256=digest)
        workspace.append((revoked,), run_id=revoked.stream(), key=f"revoke:{digest}")
        token_file(workspace.home, digest).unlink(missing_ok=True)
    return {**named[-1], "state": "revoked"}


def all_tokens(workspace: Workspace) -> list[Data]:
    """Return every token that was granted, oldest first, and whether it is accepted here."""
    return tokens_of(OfWorkspace(workspace), now())


def token_in_header(untrusted_header: str | None) -> str | None:
    """Return the token in an Authorization header; None without one. Raises TokenRefused for another scheme."""
    if untrusted_header is None:
        return None
    scheme, _, token = untrusted_header.strip().partition(" ")
    if scheme.lower() != "bearer":
        raise TokenRefused("bad Authorization: expected Bearer and a token", hint="forge token list")
    return token.strip()


def has_tokens(home: Path) -> bool:
    """Return whether a token was granted here and not revoked."""
    return any(tokens_folder(home).glob("*.json"))


def find_caller(workspace: Workspace, untrusted_token: str) -> Caller | None:
    """Return the holder of a token; None for an unknown, a revoked and an expired one, and one of another workspace.

    Raises IntegrityError if other users can read the token's file, or if it can't be read.
    """
    if not untrusted_token.startswith(PREFIX) or len(untrusted_token) > LONGEST_TOKEN:
        return None
    return _holder(workspace, sha256(untrusted_token.encode(errors="replace")))


def require_accepted(workspace: Workspace, caller: Caller) -> None:
    """Raise TokenRefused if the caller's token was revoked or has expired since it was looked up."""
    if caller.token_sha256 is not None and _holder(workspace, caller.token_sha256) is None:
        raise TokenRefused(
            f"the token of {caller.name!r} was revoked or has expired meanwhile: expected one that is accepted",
            hint="forge token list",
        )


def _holder(workspace: Workspace, digest: Digest) -> Caller | None:
    """Return the holder of the token with this digest; None if it isn't accepted."""
    path = token_file(workspace.home, digest)
    try:
        content = read_regular(path, limit_bytes=FILE_LIMIT_BYTES)
        is_shared = bool(path.stat().st_mode & 0o077)
        kept = _Kept.model_validate(orjson.loads(content))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ValidationError) as error:
        raise IntegrityError(
            f"the token's file {str(path)!r} can't be read ({error}): expected what forge token add wrote; "
            "remove the file and add another token",
            hint="forge token add --help",
        ) from error
    if is_shared:
        raise IntegrityError(
            f"other users can read {str(path)!r}: expected mode 600; revoke the token and grant another",
            hint=f"forge token revoke {kept.name}",
        )
    granted_only = workspace.ledger.stream_version(f"token:{digest}") == 1
    if not granted_only or is_past(kept.expires_at, now()):
        return None
    return Caller(kept.scope, kept.name, digest)


def caller_of_environment(workspace: Workspace) -> Caller:
    """Return the holder of the token in FORGE_TOKEN; without one an author called `mcp`. Raises TokenRefused."""
    token = os.environ.get(TOKEN_VARIABLE)
    if not token:
        return AGENT_WITHOUT_TOKEN
    found = find_caller(workspace, token)
    if found is None:
        raise TokenRefused(
            f"the token in {TOKEN_VARIABLE} is unknown here, revoked or expired: expected one of this workspace",
            hint="forge token list",
        )
    return found


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes that grant a token waiting until the block ends."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _require_name(untrusted_name: str) -> None:
    """Raise UsageError for what can be no holder's name."""
    if NAME.fullmatch(untrusted_name) is None or untrusted_name in TAKEN_NAMES:
        raise UsageError(
            f"bad name {untrusted_name[:LONGEST_TOKEN]!r}: expected 1 to 64 small letters, digits, '.', '_' and '-', "
            f"and none of {', '.join(sorted(TAKEN_NAMES))}"
        )


def _free_name(workspace: Workspace, untrusted_name: str) -> str:
    """Return the name if no token has it that isn't revoked."""
    if any(one["name"] == untrusted_name and one["state"] != "revoked" for one in all_tokens(workspace)):
        raise UsageError(
            f"there is a token {untrusted_name!r} already: expected another name, or that one revoked first",
            hint=f"forge token revoke {untrusted_name}",
        )
    return untrusted_name


def _lifetime(untrusted_text: str) -> timedelta:
    found = LIFETIME.fullmatch(untrusted_text)
    if found is None:
        raise UsageError(f"bad lifetime {untrusted_text[:20]!r}: expected a number and h, d or w, as 30d")
    return int(found[1]) * UNITS[found[2]]
