"""Records requests that are refused, besides saying why: a bad request is part of a workspace's history."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from forge.app.workspace import Workspace
from forge.errors import ForgeError
from forge.events import WorkRefused
from forge.events.work import Asked

SUBJECT_LIMIT, DETAIL_LIMIT = 200, 1000
"""Number of characters of a subject and of a message that are recorded, at most."""


@contextmanager
def recording_refusal(workspace: Workspace, asked: Asked, subject: str) -> Iterator[None]:
    """Record an error of the block as a refused request, and raise it again.

    A workspace that can't be written keeps no record; the error is the same.
    """
    try:
        yield
    except ForgeError as error:
        key = f"refused:{asked}:{workspace.rng.randbytes(12).hex()}"
        record_refusal(workspace, asked, subject, error, key=key)
        raise


def record_refusal(workspace: Workspace, asked: Asked, subject: str, error: ForgeError, *, key: str) -> None:
    """Record a refused request, once for each key; a workspace that can't be written keeps no record."""
    event = WorkRefused(
        asked=asked,
        subject=_printable(subject)[:SUBJECT_LIMIT],
        code=error.code,
        detail=_printable(error.message)[:DETAIL_LIMIT] or error.code,
    )
    with suppress(ForgeError):
        workspace.append((event,), run_id=f"refused {asked}", key=key)


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)
