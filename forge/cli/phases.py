"""The phases: plan, prompt, submit, verify, bench and promote."""

from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli.benchmark_tables import show_workloads
from forge.cli.candidate_log import show_log, show_place
from forge.cli.estimate import show_estimate
from forge.cli.evidence import show_evidence
from forge.cli.opening import ask_at_head, open_workspace
from forge.cli.options import DeviceName, Home, Json, On, Quiet, Run, Verbose
from forge.cli.output import SIMULATED, emit_json, emit_table, emit_text, say, short
from forge.cli.phase_answers import bench_answers, next_command, promote_answer, submit_answer, verify_answer
from forge.cli.replication import replicate
from forge.cli.signing_notes import say_if_unsigned
from forge.cli.suggest import suggest
from forge.errors import UsageError

Answer = dict[str, Any]  # Any: a JSON document, taken apart for people
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder with the candidate's five files.")]
Author = Annotated[
    str | None, typer.Option(help="The author, if metadata.json doesn't name one.", show_default=False)
]

Again = Annotated[bool, typer.Option("--again", help="Judge again, even if the same candidate was judged before.")]

RunOrKernel = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A run's id, a unique beginning of an id, `last`, `last-1` or `r12`; or a kernel's id."
    ),
]
Attempts = Annotated[
    int,
    typer.Option(min=1, max=8, help="Largest number of measurements. One without a verdict is repeated."),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick", help="Estimate the speedup in seconds. It is recorded as an estimate and decides nothing."
    ),
]
Replicate = Annotated[
    bool,
    typer.Option(
        "--replicate", help="Measure a promoted kernel again, an hour later or on another machine, and compare."
    ),
]


def plan(run: Run, home: Home = None, as_json: Json = False) -> None:
    """Show the skills that were chosen for a run, and why.

    Example: forge plan last
    """
    document = ask_at_head(home, lambda found: found.plan(run))
    if document is None:
        document = _planned(run, home)
    if as_json:
        emit_json(document)
    else:
        rows = [(skill["id"], skill["why"], short(skill["sha256"])) for skill in document["skills"]]
        emit_table("Skills", ("skill", "why", "sha256"), rows)
        libraries = [(one["provider"], one["state"], one["version"] or "") for one in document["libraries"] or ()]
        emit_table("Libraries", ("library", "state", "version"), libraries)


def _planned(run: str, home: Path | None) -> dict[str, Any]:
    """Return the plan of a run as a document; plan the run first if that isn't done."""
    from forge.app.stored.as_document import plain
    from forge.app.tasks.briefs import prepare

    with open_workspace(home) as workspace:
        state = workspace.find_run(run)
        prepare(workspace, state)
        accepted = workspace.find_run(state.run_id).plan
    assert accepted is not None
    return plain(accepted).event


def prompt(
    run: Run,
    budget_tokens: Annotated[
        int | None,
        typer.Option(
            min=1000,
            max=10_000_000,
            help="Print a brief of this many tokens, 3.5 bytes each. It says what it leaves out, and isn't recorded.",
            show_default=False,
        ),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Print the brief for a run. With a budget it is another text than the stored one, which stays as it is.

    Example: forge prompt last --budget-tokens 8000 > brief.md
    """
    found = None if budget_tokens else ask_at_head(home, lambda head: head.brief(run))
    path, text = _rendered(run, home, budget_tokens) if found is None else found
    if as_json:
        emit_json({"prompt_path": path, "prompt": text})
    else:
        emit_text(text)


def _rendered(run: str, home: Path | None, budget_tokens: int | None) -> tuple[str | None, str]:
    """Return the path and the text of a run's brief; plan the run and render the brief first if that isn't done."""
    from forge.app.tasks.briefs import brief, brief_within, prepare

    with open_workspace(home) as workspace:
        state = workspace.find_run(run)
        path = str(prepare(workspace, state))
        if budget_tokens is None:
            return path, brief(workspace, state)
        return None, brief_within(workspace, state, budget_tokens=budget_tokens)


def submit(run: Run, directory: Folder, author: Author = None, home: Home = None, as_json: Json = False) -> None:
    """Submit a candidate's five files.

    Example: forge submit last ./my-kernel --author ada
    """
    with open_workspace(home) as workspace:
        answer = submit_answer(workspace, run, directory, author)
        following = next_command(workspace, run, directory)
    _finish("submit", answer, following, as_json=as_json)


def verify(
    run: Run,
    again: Again = False,
    device: DeviceName = None,
    _on: On = None,
    home: Home = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Judge the submitted candidate on inputs and shapes that its author hasn't seen.

    Example: forge verify last
    """
    from forge.app.machine.chosen_device import chosen_device

    chosen_device(device)
    with open_workspace(home) as workspace:
        answer = verify_answer(workspace, run, again=again)
        following = next_command(workspace, run)
    _finish("verify", answer, following, as_json=as_json)


def bench(
    run: RunOrKernel,
    replicates: Replicate = False,
    attempts: Attempts = 1,
    quick: Quick = False,
    device: DeviceName = None,
    _on: On = None,
    home: Home = None,
    _quiet: Quiet = False,
    _verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Time the verified candidate against its baselines, or a promoted kernel a second time.

    Example: forge bench last
    """
    from forge.app.machine.chosen_device import chosen_device

    chosen_device(device)
    if quick and (replicates or attempts > 1):
        raise UsageError(
            "--quick is an estimate, so expected neither --attempts nor --replicate with it",
            hint="forge bench --help",
        )
    if replicates and attempts > 1:
        raise UsageError(
            "--attempts with --replicate: expected one or the other, since a replication is measured once",
            hint="forge bench --help",
        )
    if replicates or quick:
        (replicate if replicates else show_estimate)(run, home, as_json=as_json)
        return
    with open_workspace(home) as workspace:
        answer = bench_answers(workspace, run, attempts=attempts)
        following = next_command(workspace, run)
    _finish("bench", answer, following, as_json=as_json)


def promote(run: Run, home: Home = None, as_json: Json = False) -> None:
    """Promote the candidate, if the recorded evidence allows it.

    Example: forge promote last
    """
    with open_workspace(home) as workspace:
        answer = promote_answer(workspace, run)
        following = next_command(workspace, run)
    _finish("promote", answer, following, as_json=as_json)


def _finish(name: str, answer: Answer, following: str, *, as_json: bool) -> None:
    if as_json:
        emit_json(answer)
    else:
        show(name, answer)
    leave(answer, following)


def leave(answer: Answer, following: str) -> None:
    """Suggest the next command; exit with 1 unless the answer is accepted."""
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
        say(
            f"{SIMULATED}: an interpreter ran the kernel in place of the target, so nothing of this can be promoted. "
            "Open a run of the task on a machine with the target, or name one by --on"
        )
    if answer.get("gates"):
        rows = [(g["name"], g["verdict"], g["observed"], g["threshold"]) for g in answer["gates"]]
        emit_table("", ("gate", "verdict", "observed", "threshold"), rows)
    show_evidence(answer)
    show_workloads(answer)
    if answer["verdict"] != "accepted":
        show_place(answer.get("mend"))
        show_log(answer.get("log"), answer.get("report"))
