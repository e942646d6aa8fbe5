"""Replays a session of a workspace: no network, no phase, no event."""

from forge.app.sessions.finding import find_session
from forge.app.sessions.opening import require_author, require_version
from forge.app.workspace import Workspace
from forge.domain.authoring import Author
from forge.pipeline.sessions.transcript import Replayed, replay


def replay_session(workspace: Workspace, name: str, author: Author, *, lenient: bool = False) -> Replayed:
    """Run a session's loop again from its transcript.

    Raises TranscriptRefused for another version, and without `lenient` also for another author. Raises ReplayDiverged
    at the first event that differs, unless `lenient`.
    """
    state = find_session(workspace, name)
    require_version(state)
    if not lenient:
        require_author(state, author)
    events = list(workspace.ledger.read(stream=f"session:{state.session_id}"))
    return replay(events, author, workspace.blobs.get, lenient=lenient)
