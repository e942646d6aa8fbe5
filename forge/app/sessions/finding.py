"""Finds sessions by name. It imports nothing that judges, so that a list stays quick."""

from forge.app.workspace import Workspace
from forge.errors import SessionNotFound
from forge.events.session import SessionOpened
from forge.projections import sessions
from forge.projections.sessions import STREAM, SessionState

MOST_NAMED = 3
"""Number of sessions that a message names if a name means several: enough to see how they differ."""


def find_session(workspace: Workspace, name: str) -> SessionState:
    """Return the session that `name` means: its id, a unique beginning of it, or `last`; raise SessionNotFound."""
    if name == "last":
        newest = workspace.ledger.newest(SessionOpened.TYPE, before=0)
        if newest is None:
            raise SessionNotFound("there is no session yet", hint="forge agent run --help")
        return sessions.fold(workspace.ledger.read(stream=newest.stream))
    known = workspace.ledger.streams(STREAM + name) if name else []
    exact = [one for one in known if one == STREAM + name]
    if len(exact or known) != 1:
        shown = ", ".join(one.removeprefix(STREAM) for one in list(known)[:MOST_NAMED])
        raise SessionNotFound(
            f"{len(known)} sessions start with {name!r}{f' ({shown})' if shown else ''}: "
            "expected a session's id, a unique beginning of one, or `last`",
            hint="forge agent list",
        )
    return sessions.fold(workspace.ledger.read(stream=(exact or list(known))[0]))


def all_sessions(workspace: Workspace) -> list[SessionState]:
    """Return every session, the oldest first."""
    opened = workspace.ledger.read(types=(SessionOpened.TYPE,))
    return [sessions.fold(workspace.ledger.read(stream=one.stream)) for one in opened]
