"""Sessions, in which a program writes candidates: run, resume, replay, grant, withdraw, cost and list."""

from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli import agent_options as options
from forge.cli.agent_score import score
from forge.cli.agent_solve import solve
from forge.cli.agent_view import show_costs, show_replay, show_sessions, show_state
from forge.cli.agent_work import begin, work_session, work_to_the_end
from forge.cli.opening import open_workspace
from forge.cli.option_groups import with_groups
from forge.cli.options import DeviceName, Home, Json
from forge.cli.output import emit_json, emit_table, say
from forge.cli.suggest import suggest
from forge.errors import UsageError

app = typer.Typer(
    help="Sessions, in which a program writes candidates in a budget.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in (solve, score):
    app.command()(command)

Session = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session's id, a unique beginning of an id, or `last`.")
]
Reason = Annotated[str, typer.Option("--reason", help="Reason; it is recorded.")]
Lenient = Annotated[bool, typer.Option("--lenient", help="Note each difference and go on from what is recorded.")]


@app.command()
def pack(
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="cpu, cuda, rocm or metal.")],
    profile: options.Profile = None,
    as_json: Json = False,
) -> None:
    """Show what an author is told of a platform; with --profile, read a profiler's export.

    Example: forge agent pack rocm --profile rocprof:counters.csv
    """
    from dataclasses import asdict

    from forge.app.sessions.platform_pack import judging, read_profile
    from forge.platforms.packs import find_pack

    found = find_pack(platform)
    readings = () if profile is None else read_profile(found, profile)
    if as_json:
        listed = [asdict(one) for one in readings]
        emit_json({"platform": found.name, "judges": judging(found), "text": found.text(), "readings": listed})
    elif readings:
        rows = [(one.id, f"{one.value:.6g}", one.unit) for one in readings]
        emit_table("Profile", ("counter", "value", "unit"), rows)
    else:
        typer.echo(found.text())
    say(judging(found))


@app.command()
@with_groups
def run(
    task: options.TaskName,
    author: options.AuthorOptions,
    budget: options.SessionBudget,
    template: options.Template = None,
    profile: options.Profile = None,
    seed: options.Seed = None,
    price: options.Prices = None,
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
    from forge.app.machine.chosen_device import chosen_device
    from forge.app.sessions.opening import SessionRequest
    from forge.domain.session import SessionTerms

    chosen_device(device)
    choice = author.choice(template=template, profile=profile)
    request = SessionRequest(
        task=task,
        seed=options.seed_or_drawn(seed),
        budget=budget.amounts(),
        terms=SessionTerms(rounds_without_gain=rounds_without_gain, floor_share=floor_share, workers=workers),
        prices=options.prices_of(price),
    )
    with open_workspace(home) as workspace:
        begin(workspace, choice, request, author.key_file, as_json=as_json)


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
    from forge.app.machine.chosen_device import chosen_device
    from forge.app.sessions.choice import answering
    from forge.app.sessions.finding import find_session
    from forge.app.sessions.opening import author_to_resume, source_stored

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
        work_to_the_end(workspace, state.session_id, author, asked, as_json=as_json)


@app.command()
def submit(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with a candidate's five files.")],
    hypothesis: options.Hypothesis = "",
    device: DeviceName = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Hand in a person's candidate. The session goes on until it waits for the next one.

    Exit status: 0 if a kernel was promoted, 1 if none was.

    Example: forge agent submit last ./my-kernel --hypothesis "one pass over the row"
    """
    from forge.app.machine.chosen_device import chosen_device
    from forge.app.sessions.finding import find_session
    from forge.app.sessions.opening import author_to_resume
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


@app.command()
def replay(session: Session, lenient: Lenient = False, home: Home = None, as_json: Json = False) -> None:
    """Run a session's loop again from its transcript, and compare each event; nothing is sent, run or written.

    Example: forge agent replay last
    """
    from forge.app.sessions.finding import find_session
    from forge.app.sessions.opening import author_of, require_version
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
@with_groups
def grant(
    session: Session,
    budget: options.GrantedBudget,
    reason: Reason = "granted by hand",
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Give an open session more budget. Only a person at the command line may do so.

    Example: forge agent grant last --candidates 10
    """
    from forge.app.sessions.opening import grant as grant_more
    from forge.app.sessions.view import summary

    with open_workspace(home) as workspace:
        state = grant_more(workspace, session, budget.amounts(), reason)
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
    """Show what sessions used, failures included, and how much that is for each promoted kernel.

    Example: forge agent cost last
    """
    from forge.app.sessions.finding import all_sessions, find_session
    from forge.app.sessions.report import cost_of, report
    from forge.app.sessions.shrinkage import shrinkage
    from forge.app.sessions.view import summary

    with open_workspace(home) as workspace:
        named = all_sessions(workspace) if session is None else [find_session(workspace, session)]
        document: dict[str, Any] = {"authors": report(workspace, named), "screening": shrinkage(workspace, named)}
        if session is not None:
            document["session"] = cost_of(named[0])
    if as_json:
        emit_json(document)
    else:
        if session is not None:
            show_state(summary(named[0]), as_json=False)
        show_costs(document)


@app.command("list")
def list_sessions(home: Home = None, as_json: Json = False) -> None:
    """List every session with its state.

    Example: forge agent list
    """
    from forge.app.sessions.finding import all_sessions
    from forge.app.sessions.view import summary

    with open_workspace(home) as workspace:
        found = [summary(one) for one in all_sessions(workspace)]
    if as_json:
        emit_json(found)
    else:
        show_sessions(found)
