"""Lists tokens, and says whether each is accepted here. It imports no model of an event, so that it stays quick."""

from datetime import UTC, datetime
from pathlib import Path

from forge.app.plain_events import HasEvents

Data = dict[str, object]
TOKENS_FOLDER = "tokens"
"""Folder of a workspace with one file for each token that was granted there."""


def tokens_now(workspace: HasEvents) -> list[Data]:
    """Return every token that was granted, as it stands now."""
    return tokens_of(workspace, datetime.now(UTC))


def tokens_of(workspace: HasEvents, at: datetime) -> list[Data]:
    """Return every token that was granted, oldest first, and whether it is accepted here at a time."""
    found: dict[str, Data] = {}
    for one in workspace.events("TokenGranted", "TokenRevoked"):
        digest = one.event["token_sha256"]
        if one.type == "TokenRevoked":
            found[digest]["state"] = "revoked"
            continue
        state = "expired" if is_past(one.event["expires_at"], at) else "accepted"
        if not token_file(workspace.home, digest).is_file():
            state = "not of this folder"
        found[digest] = one.event | {"state": state, "granted_at": one.recorded_at, "granted_by": one.actor}
    return list(found.values())


def tokens_folder(home: Path) -> Path:
    """Return the folder of a workspace's tokens."""
    return home / TOKENS_FOLDER


def token_file(home: Path, digest: str) -> Path:
    """Return the file of the token with this digest."""
    return tokens_folder(home) / f"{digest}.json"


def is_past(moment: str | None, at: datetime) -> bool:
    """Return whether a recorded moment has passed at a time; None never does."""
    return moment is not None and datetime.fromisoformat(moment) <= at
