"""Opens and works off sessions at the command line, and shows them as they go."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from forge.cli.agent_view import live, show_state
from forge.cli.output import emit_json_line, say
from forge.cli.progress import reporting
from forge.cli.suggest import suggest

if TYPE_CHECKING:
    from forge.app.sessions.choice import AuthorChoice
    from forge.app.sessions.model_exchange import Model
    from forge.app.sessions.opening import SessionRequest
    from forge.app.workspace import Workspace
    from forge.authors.kinds import AuthorSource
    from forge.domain.authoring import Author


def begin(
    workspace: "Workspace",
    choice: "AuthorChoice",
    request: "SessionRequest",
    key_file: Path | None,
    *,
    as_json: bool,
) -> None:
    """Open a session for the chosen author and work it off. A person's session waits for the first submission."""
    from forge.app.runs.refused_requests import recording_refusal
    from forge.app.sessions.choice import answering, prices_for, source_of
    from forge.app.sessions.opening import open_session
    from forge.authors.kinds import make_author

    with recording_refusal(workspace, "session", choice.kind):
        source = source_of(workspace, request.task, choice)
        made, asked = make_author(source), answering(workspace, source, key_file)
    request = replace(request, prices=prices_for(source, request.prices))
    session_id = open_session(workspace, made, request, source=source)
    if choice.kind == "person":
        _show_room(workspace, session_id, source, as_json=as_json)
        return
    work_to_the_end(workspace, session_id, made, asked, as_json=as_json)


def _show_room(workspace: "Workspace", session_id: str, source: "AuthorSource", *, as_json: bool) -> None:
    """Say where a person finds the brief, and how to go on."""
    from forge.app.sessions.person import write_starting_files

    folder = write_starting_files(workspace, session_id, source)
    if as_json:
        emit_json_line({"session_id": session_id, "folder": str(folder)})
    say(f"session {session_id} waits: read {folder / 'brief.md'}")
    suggest("next", f"forge agent submit {session_id} FOLDER")


def work_to_the_end(
    workspace: "Workspace", session_id: str, author: "Author", asked: "Model | None", *, as_json: bool
) -> None:
    """Work a session off, show it as it goes, and exit with 1 if no kernel was promoted."""
    with closing_agent(asked):
        found = work_session(workspace, session_id, author, asked=asked, as_json=as_json)
    if found["kernels"]:
        suggest("next", f"forge agent cost {session_id}")
        return
    suggest("try", f"forge agent cost {session_id}")
    raise typer.Exit(1)


@contextmanager
def closing_agent(asked: object) -> Iterator[None]:
    """End a coding agent with the block; other kinds of authors have nothing to end."""
    from forge.app.sessions.coding_agent import CodingAgent

    try:
        yield
    finally:
        if isinstance(asked, CodingAgent):
            asked.close()


def work_session(
    workspace: "Workspace", session_id: str, author: "Author", *, asked: "Model | None" = None, as_json: bool
) -> dict[str, Any]:
    """Work a session off, and show it as it goes; return where it stands then."""
    from forge.app.sessions.opening import Means, work_off
    from forge.app.sessions.trials import DraftScreener
    from forge.app.sessions.view import summary, telling

    with reporting("agent") as progress:
        watch = telling(workspace.blobs.get, live(as_json=as_json))
        screener = DraftScreener(workspace, progress)
        means = Means(progress=progress, watch=watch, model=asked, screener=screener)
        try:
            state = work_off(workspace, session_id, author, means)
        except KeyboardInterrupt as interrupted:
            raise KeyboardInterrupt(f"forge agent resume {session_id}") from interrupted
    found = summary(state)
    show_state(found, as_json=as_json, one_line=True)
    return found
