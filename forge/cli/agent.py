"""Sessions, in which a program writes candidates: run, resume, replay, grant, withdraw, cost and list."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forge.cli import agent_options as options
from forge.cli import agent_pack, agent_score, agent_solve
from forge.cli.agent_view import live, show_costs, show_replay, show_sessions, show_state
from forge.cli.opening import open_workspace
from forge.cli.options import DeviceName, Home, Json
from forge.cli.output import emit_json, emit_json_line, say
from forge.cli.progress import reporting
from forge.cli.suggest import suggest
from forge.errors import UsageError

if TYPE_CHECKING:
    from forge.app.sessions.authors import AuthorSource
    from forge.app.sessions.choice import AuthorChoice
    from forge.app.sessions.ledger_ground import Model
    from forge.app.sessions.opening import SessionRequest
    from forge.app.workspace import Workspace
    from forge.domain.authoring import Author

app = typer.Typer(
    help="Sessions, in which a program writes candidates in a budget.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
agent_solve.register(app)
agent_score.register(app)
agent_pack.register(app)

Session = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session's id, a unique beginning of an id, or `last`.")
]
Reason = Annotated[str, typer.Option("--reason", help="Reason; it is recorded.")]
Lenient = Annotated[bool, typer.Option("--lenient", help="Note each difference and go on from what is recorded.")]


@app.command()
def run(
    task: options.TaskName,
    author: options.AuthorKind,
    template: options.Template = None,
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    key_file: options.KeyFile = None,
    agent_cmd: options.AgentCommand = None,
    allow: options.Allow = None,
    allow_env: options.AllowEnv = None,
    profile: options.Profile = None,
    seed: options.Seed = None,
    candidates: options.Candidates = 20,
    minutes: options.Minutes = 120,
    device_minutes: options.DeviceMinutes = 120,
    dollars: options.Dollars = 0,
    tokens: options.Tokens = 0,
    price: options.Prices = None,
    option: options.Settings = None,
    rounds_without_gain: options.RoundsWithoutGain = 5,
    floor_share: options.FloorShare = 0.95,
    workers: options.Workers = 0,
    device: DeviceName = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Let an author write candidates for a task until a rule ends the session.

    With --json it prints one document a line for each event, and a summary on the last line.
    Exit status: 0 if a kernel was promoted, 1 if none was.

    Example: forge agent run cpp_rmsnorm_cpu --author folders --template ./drafts
    """
    from forge.app.chosen_device import chosen_device
    from forge.app.sessions.choice import AuthorChoice
    from forge.app.sessions.opening import SessionRequest
    from forge.domain.session import SessionTerms

    chosen_device(device)
    choice = AuthorChoice(
        kind=author,
        template=template,
        model=model,
        base_url=base_url,
        agent_cmd=agent_cmd,
        allow=tuple(allow or ()),
        allow_env=tuple(allow_env or ()),
        profile=profile,
        options=dict(options.named_value(one) for one in option or []),
    )
    request = SessionRequest(
        task=task,
        seed=options.seed_or_drawn(seed),
        budget=options.amounts(candidates, minutes, device_minutes, dollars, tokens),
        terms=SessionTerms(rounds_without_gain=rounds_without_gain, floor_share=floor_share, workers=workers),
        prices=tuple(options.price_of(one) for one in price or []),
    )
    with open_workspace(home) as workspace:
        _begin(workspace, choice, request, key_file, as_json=as_json)


def _begin(
    workspace: "Workspace",
    choice: "AuthorChoice",
    request: "SessionRequest",
    key_file: Path | None,
    *,
    as_json: bool,
) -> None:
    """Open a session for the chosen author and work it off. A person's session waits for the first submission."""
    from forge.app.refusals import recording_refusal
    from forge.app.sessions.authors import make_author
    from forge.app.sessions.choice import answering, prices_for, source_of
    from forge.app.sessions.opening import open_session

    with recording_refusal(workspace, "session", choice.kind):
        source = source_of(workspace, request.task, choice)
        made, asked = make_author(source), answering(workspace, source, key_file)
    request = replace(request, prices=prices_for(source, request.prices))
    session_id = open_session(workspace, made, request, source=source)
    if choice.kind == "person":
        _show_room(workspace, session_id, source, as_json=as_json)
        return
    _work(workspace, session_id, made, asked, as_json=as_json)


@app.command()
def resume(
    session: Session,
    key_file: options.KeyFile = None,
    device: DeviceName = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Go on with a session whose process ended; no answered request is asked again.

    Example: forge agent resume last
    """
    from forge.app.chosen_device import chosen_device
    from forge.app.sessions.choice import answering
    from forge.app.sessions.opening import author_to_resume, find_session, source_stored

    chosen_device(device)
    with open_workspace(home) as workspace:
        state = find_session(workspace, session)
        author = author_to_resume(workspace, state)
        if author.name == "person":
            raise UsageError(
                f"session {state.session_id!r} waits for a person: expected a submission",
                hint=f"forge agent submit {state.session_id} FOLDER",
            )
        asked = answering(workspace, source_stored(workspace, state), key_file)
        _work(workspace, state.session_id, author, asked, as_json=as_json)


@app.command()
def submit(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with a candidate's five files.")],
    hypothesis: options.Hypothesis = "",
    device: DeviceName = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Hand in a person's candidate; the session goes on until it waits for the next one.

    Exit status: 0 if a kernel was promoted, 1 if none was.

    Example: forge agent submit last ./my-kernel --hypothesis "one pass over the row"
    """
    from forge.app.chosen_device import chosen_device
    from forge.app.sessions.opening import author_to_resume, find_session
    from forge.app.sessions.person import OneSubmission, SessionWaits, WaitingAuthor, feedback_file, read_submission
    from forge.app.sessions.view import summary

    chosen_device(device)
    submission = OneSubmission(read_submission(folder, hypothesis))
    with open_workspace(home) as workspace:
        state = find_session(workspace, session)
        told = feedback_file(workspace, state)
        author = WaitingAuthor(author_to_resume(workspace, state), submission, told)
        try:
            found = work_session(workspace, state.session_id, author, asked=submission, as_json=as_json)
        except SessionWaits:
            found = summary(find_session(workspace, state.session_id))
            show_state(found, as_json=as_json, one_line=True)
            say(f"the feedback is in {told}")
    if not found["kernels"]:
        following = f"submit {state.session_id} FOLDER" if found["state"] == "open" else f"cost {state.session_id}"
        suggest("try", f"forge agent {following}")
        raise typer.Exit(1)


def _show_room(workspace: "Workspace", session_id: str, source: "AuthorSource", *, as_json: bool) -> None:
    """Say where a person finds the brief, and how to go on."""
    from forge.app.sessions.person import write_room

    folder = write_room(workspace, session_id, source)
    if as_json:
        emit_json_line({"session_id": session_id, "folder": str(folder)})
    say(f"session {session_id} waits: read {folder / 'brief.md'}")
    suggest("next", f"forge agent submit {session_id} FOLDER")


def _work(workspace: "Workspace", session_id: str, author: "Author", asked: "Model | None", *, as_json: bool) -> None:
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
    """End a coding agent with the block; other answerers have nothing to end."""
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
    from forge.app.sessions.view import summary, telling
    from forge.app.trials import DraftScreener

    with reporting("agent") as progress:
        watch = telling(workspace.blobs.get, live(as_json=as_json))
        screener = DraftScreener(workspace, progress)
        means = Means(progress=progress, watch=watch, model=asked, screener=screener)
        try:
            state = work_off(workspace, session_id, author, means)
        except KeyboardInterrupt:
            say(f"to go on after this interruption: forge agent resume {session_id}")
            raise
    found = summary(state)
    show_state(found, as_json=as_json, one_line=True)
    return found


@app.command()
def replay(session: Session, lenient: Lenient = False, home: Home = None, as_json: Json = False) -> None:
    """Run a session's loop again from its transcript, and compare each event; nothing is sent, run or written.

    Example: forge agent replay last
    """
    from forge.app.sessions.opening import author_of, find_session, require_version
    from forge.app.sessions.replaying import replay_session

    with open_workspace(home) as workspace:
        state = find_session(workspace, session)
        require_version(state)
        found = replay_session(workspace, state.session_id, author_of(workspace, state), lenient=lenient)
    show_replay(state.session_id, found, as_json=as_json)
    if found.divergences:
        suggest("try", f"forge agent cost {state.session_id}")
        raise typer.Exit(1)


@app.command()
def grant(
    session: Session,
    candidates: options.Candidates = 0,
    minutes: options.Minutes = 0,
    device_minutes: options.DeviceMinutes = 0,
    dollars: options.Dollars = 0,
    tokens: options.Tokens = 0,
    reason: Reason = "granted by hand",
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Give an open session more budget; only a person at the command line may.

    Example: forge agent grant last --candidates 10
    """
    from forge.app.sessions.opening import grant as grant_more
    from forge.app.sessions.view import summary

    more = options.amounts(candidates, minutes, device_minutes, dollars, tokens)
    with open_workspace(home) as workspace:
        state = grant_more(workspace, session, more, reason)
    show_state(summary(state), as_json=as_json)


@app.command()
def withdraw(
    session: Session, reason: Reason = "withdrawn by hand", home: Home = None, as_json: Json = False
) -> None:
    """Close a session; its process ends after the request that it has begun.

    Example: forge agent withdraw last --reason "another task comes first"
    """
    from forge.app.sessions.opening import withdraw as close
    from forge.app.sessions.view import summary

    with open_workspace(home) as workspace:
        state = close(workspace, session, reason)
    show_state(summary(state), as_json=as_json)


@app.command()
def cost(
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="A session. Default: all of them, by author.")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show what sessions used, and what that is for each promoted kernel, all failures counted.

    Example: forge agent cost last
    """
    from forge.app.sessions.opening import all_sessions, find_session
    from forge.app.sessions.report import cost_of, report
    from forge.app.sessions.shrinkage import shrinkage

    with open_workspace(home) as workspace:
        named = all_sessions(workspace) if session is None else [find_session(workspace, session)]
        document: dict[str, Any] = {"authors": report(workspace, named), "screening": shrinkage(workspace, named)}
        if session is not None:
            document["session"] = cost_of(named[0])
    if as_json:
        emit_json(document)
    else:
        show_costs(document)


@app.command("list")
def list_sessions(home: Home = None, as_json: Json = False) -> None:
    """List every session with its state.

    Example: forge agent list
    """
    from forge.app.sessions.opening import all_sessions
    from forge.app.sessions.view import summary

    with open_workspace(home) as workspace:
        found = [summary(one) for one in all_sessions(workspace)]
    if as_json:
        emit_json(found)
    else:
        show_sessions(found)
