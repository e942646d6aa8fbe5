"""The phases: plan, prompt, submit, verify, bench and promote. `pipeline` runs the last four."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forge.cli.candidate_log import show_log
from forge.cli.evidence import show_evidence
from forge.cli.opening import open_workspace
from forge.cli.options import DeviceName, Home, Json, Run
from forge.cli.output import SIMULATED, emit_json, emit_table, emit_text, reporting, say, short
from forge.cli.replication import replicate
from forge.cli.signed import say_if_unsigned
from forge.cli.suggest import suggest
from forge.cli.timed import show_workloads

if TYPE_CHECKING:
    from forge.app.workspace import Workspace

Answer = dict[str, Any]  # Any: a JSON document, taken apart for people
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder with the candidate's five files.")]
Author = Annotated[
    str | None, typer.Option(help="The author, if metadata.json doesn't name one.", show_default=False)
]

Again = Annotated[bool, typer.Option("--again", help="Judge again, even if the same candidate was judged before.")]

RunOrKernel = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run's id, a unique beginning of an id, or `last`; or a kernel's id."),
]
Replicate = Annotated[
    bool,
    typer.Option(
        "--replicate", help="Measure a promoted kernel again, an hour later or on another machine, and compare."
    ),
]


def register(app: typer.Typer) -> None:
    """Add these commands to the top level."""
    for command in (plan, prompt, submit, verify, bench, promote, pipeline):
        app.command()(command)


def plan(run: Run, home: Home = None, as_json: Json = False) -> None:
    """Show the skills that were chosen for a run, and why.

    Example: forge plan last
    """
    from forge.app.briefs import prepare

    with open_workspace(home) as workspace:
        state = workspace.find_run(run)
        prepare(workspace, state)
        accepted = workspace.find_run(state.run_id).plan
        assert accepted is not None
        document = accepted.event.model_dump(mode="json")
    if as_json:
        emit_json(document)
    else:
        rows = [(skill["id"], skill["why"], short(skill["sha256"])) for skill in document["skills"]]
        emit_table("Skills", ("skill", "why", "sha256"), rows)
        libraries = [(one["provider"], one["state"], one["version"] or "") for one in document["libraries"] or ()]
        emit_table("Libraries", ("library", "state", "version"), libraries)


def prompt(
    run: Run,
    budget_tokens: Annotated[
        int | None,
        typer.Option(
            min=1000,
            max=10_000_000,
            help="Render the brief again within this many tokens, 3.5 bytes each. It lists what it leaves out.",
            show_default=False,
        ),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Print the brief for a run.

    Example: forge prompt last --budget-tokens 8000 > brief.md
    """
    from forge.app.briefs import brief, prepare, render_within

    with open_workspace(home) as workspace:
        state = workspace.find_run(run)
        if budget_tokens is not None:
            render_within(workspace, state, budget_tokens=budget_tokens)
        text, path = brief(workspace, state), prepare(workspace, workspace.find_run(state.run_id))
    if as_json:
        emit_json({"prompt_path": str(path), "prompt": text})
    else:
        emit_text(text)


def submit(run: Run, directory: Folder, author: Author = None, home: Home = None, as_json: Json = False) -> None:
    """Submit a candidate's five files.

    Example: forge submit last ./my-kernel --author ada
    """
    with open_workspace(home) as workspace:
        answer = _submit(workspace, run, directory, author)
        following = _next(workspace, run)
    _finish("submit", answer, following, as_json=as_json)


def verify(
    run: Run, again: Again = False, device: DeviceName = None, home: Home = None, as_json: Json = False
) -> None:
    """Judge the submitted candidate on inputs and shapes that its author hasn't seen.

    Example: forge verify last
    """
    from forge.app.chosen_device import chosen_device

    chosen_device(device)
    with open_workspace(home) as workspace:
        answer = _verify(workspace, run, again=again)
        following = _next(workspace, run)
    _finish("verify", answer, following, as_json=as_json)


def bench(
    run: RunOrKernel, again: Replicate = False, device: DeviceName = None, home: Home = None, as_json: Json = False
) -> None:
    """Time the verified candidate against its baselines, or a promoted kernel a second time.

    Example: forge bench last
    """
    from forge.app.chosen_device import chosen_device

    chosen_device(device)
    if again:
        replicate(run, home, as_json=as_json)
        return
    with open_workspace(home) as workspace:
        answer = _bench(workspace, run)
        following = _next(workspace, run)
    _finish("bench", answer, following, as_json=as_json)


def promote(run: Run, home: Home = None, as_json: Json = False) -> None:
    """Promote the candidate, if the recorded evidence allows it.

    Example: forge promote last
    """
    with open_workspace(home) as workspace:
        answer = _promote(workspace, run)
        following = _next(workspace, run)
    _finish("promote", answer, following, as_json=as_json)


def pipeline(
    run: Run,
    directory: Folder,
    author: Author = None,
    again: Again = False,
    device: DeviceName = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Submit, verify, bench and promote; stop at the first refusal.

    Example: forge pipeline last examples/honest_cpp
    """
    from forge.app.chosen_device import chosen_device

    chosen_device(device)
    with open_workspace(home) as workspace:
        run_id = workspace.find_run(run).run_id
        answers = _until_refused(
            {
                "submit": lambda: _submit(workspace, run_id, directory, author),
                "verify": lambda: _verify(workspace, run_id, again=again),
                "bench": lambda: _bench(workspace, run_id),
                "promote": lambda: _promote(workspace, run_id),
            },
            as_json=as_json,
        )
        following = _next(workspace, run_id)
    last = list(answers.values())[-1]
    if as_json:
        emit_json({**last, "kernel_id": last.get("kernel_id"), "phases": answers})
    _leave(last, following)


def _until_refused(steps: Mapping[str, Callable[[], Answer]], *, as_json: bool) -> dict[str, Answer]:
    """Run the steps in order, up to the first that isn't accepted."""
    from forge.errors import EnvironmentUnfit

    answers: dict[str, Answer] = {}
    for name, step in steps.items():
        try:
            answers[name] = step()
        except EnvironmentUnfit as unfit:
            reason = {"code": "INFRASTRUCTURE", "message": unfit.message}
            unfit.document = {"verdict": "inconclusive", "kernel_id": None, "reason": reason, "phases": answers}
            raise
        if not as_json:
            show(name, answers[name])
        if answers[name]["verdict"] != "accepted":
            break
    return answers


@contextmanager
def _told_if_recorded(workspace: "Workspace", phase: str) -> Iterator[None]:
    """Say so if the phase recorded nothing, because its answer is already in the ledger."""
    before = workspace.ledger.recorded_seq
    yield
    if workspace.ledger.recorded_seq == before:
        say(f"{phase}: recorded already; this is the recorded answer")


def _submit(workspace: "Workspace", run: str, directory: Path, author: str | None) -> Answer:
    from forge.app import phases
    from forge.app.phase_answer import phase_answer

    with _told_if_recorded(workspace, "submit"):
        event = phases.submit(workspace, workspace.find_run(run), directory, author=author)
    return phase_answer(event, workspace=workspace)


def _verify(workspace: "Workspace", run: str, *, again: bool) -> Answer:
    from forge.app import phases, runs
    from forge.app.phase_answer import phase_answer

    with reporting("verify") as progress:
        state = runs.take_up(workspace, workspace.find_run(run))
        with _told_if_recorded(workspace, "verify"):
            event = phases.verify_candidate(workspace, state, progress=progress, again=again)
    return phase_answer(event, workspace=workspace)


def _bench(workspace: "Workspace", run: str) -> Answer:
    from forge.app import phases, runs
    from forge.app.phase_answer import phase_answer

    with reporting("bench") as progress:
        state = runs.take_up(workspace, workspace.find_run(run))
        with _told_if_recorded(workspace, "bench"):
            event = phases.bench(workspace, state, progress=progress)
    return phase_answer(event, workspace=workspace)


def _promote(workspace: "Workspace", run: str) -> Answer:
    from forge.app import phases, runs
    from forge.app.phase_answer import phase_answer

    state = runs.take_up(workspace, workspace.find_run(run))
    with _told_if_recorded(workspace, "promote"):
        event = phases.promote_candidate(workspace, state)
    answer = phase_answer(event, workspace=workspace)
    sealed = workspace.find_run(state.run_id).end
    assert sealed is not None
    return answer | {"seq": sealed.seq, "signed_size": workspace.signed_size(sealed.seq)}


def _next(workspace: "Workspace", run: str) -> str:
    from forge.app.runs import run_summary

    summary = run_summary(workspace.find_run(run))
    following = summary["next"]
    return str(following) if following else f"forge run show {summary['run_id']}"


def _finish(name: str, answer: Answer, following: str, *, as_json: bool) -> None:
    if as_json:
        emit_json(answer)
    else:
        show(name, answer)
    _leave(answer, following)


def _leave(answer: Answer, following: str) -> None:
    if "signed_size" in answer:
        say_if_unsigned(answer)
    accepted = answer["verdict"] == "accepted"
    suggest("next" if accepted else "try", following)
    if not accepted:
        raise typer.Exit(1)


def show(name: str, answer: Answer) -> None:
    """Print one phase's answer as tables."""
    reason = answer.get("reason")
    said = f"{reason['code']}: {reason['message']}" if reason else answer.get("kernel_id") or ""
    verdict = f"{answer['verdict']} ({SIMULATED})" if answer.get("simulated") else answer["verdict"]
    emit_table(name, ("verdict", "candidate", "why"), [(verdict, short(answer.get("candidate", "")), said)])
    if answer.get("simulated"):
        say(f"{SIMULATED}: an interpreter ran the kernel in place of the target, so nothing of this can be promoted")
    if answer.get("gates"):
        rows = [(g["name"], g["verdict"], g["observed"], g["threshold"]) for g in answer["gates"]]
        emit_table("", ("gate", "verdict", "observed", "threshold"), rows)
    show_evidence(answer)
    show_workloads(answer)
    if answer["verdict"] != "accepted":
        show_log(answer.get("log"), answer.get("report"))
