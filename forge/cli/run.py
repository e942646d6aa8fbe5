"""Runs: one candidate's way through the phases."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from forge.cli.candidate_log import show_log, show_place
from forge.cli.lists import Asked, show_run, show_runs
from forge.cli.opening import ask_at_head, ask_run, open_workspace
from forge.cli.options import Home, Json, Limit, Run, Sort
from forge.cli.output import emit_answer, emit_json, say
from forge.cli.suggest import suggest

if TYPE_CHECKING:
    from forge.app.plain_events import HasEvents
    from forge.app.stored.run_documents import RunDocuments

app = typer.Typer(help="Runs: one candidate's way through the phases.", no_args_is_help=True, rich_markup_mode=None)


@app.command("open")
def open_run(
    task: Annotated[str, typer.Argument(help="A task's id, a unique beginning of it, or `last`.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Open a run for another candidate of a task.

    Example: forge run open cpp_fused_add_rmsnorm_cpu
    """
    from forge.app.tasks.create import open_run as open_another

    with open_workspace(home) as workspace:
        opened = open_another(workspace, task)
    document = {"task_id": opened.task_id, "run_id": opened.run_id, "prompt_path": str(opened.prompt_path)}
    emit_answer(document, "Run", ("run", "prompt"), [(opened.run_id, opened.prompt_path)], as_json=as_json)
    suggest("next", f"forge submit {opened.run_id} DIR")


@app.command("list")
def list_runs(
    state: Annotated[str | None, typer.Option(help="Only runs in this state.", show_default=False)] = None,
    task: Annotated[
        str | None, typer.Option(help="Only runs of this task: its id or a beginning of it.", show_default=False)
    ] = None,
    sort: Sort = None,
    limit: Limit = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """List every run with its state. A run's number is a short name for it: forge run show r12.

    Example: forge run list --state verified --sort -run --limit 10
    """
    from forge.app.stored.run_summary import run_summary

    with open_workspace(home) as workspace:
        summaries = [run_summary(run) for run in workspace.run_states().runs.values()]
    show_runs(summaries, Asked(sort=sort, limit=limit, as_json=as_json), state=state, task=task)


@app.command()
def show(
    run: Run,
    with_log: Annotated[
        bool, typer.Option("--log", help="Also show what the compiler, the candidate or its tests said.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show a run's state and the next command.

    Example: forge run show last --log
    """
    from forge.app.runs.author_log import run_log

    def answer(opened: "HasEvents", found: "RunDocuments") -> tuple[dict[str, Any], dict[str, Any]]:  # Any: JSON
        return {**found.summary}, run_log(opened.home, found)

    summary, said = ask_run(home, run, answer)
    if as_json:
        emit_json(
            {**summary, "report": said["report"]} | ({"log": said["log"], "mend": said["mend"]} if with_log else {})
        )
        return
    show_run({**summary, "report": said["report"]}, with_hint=not with_log)
    if with_log:
        show_log(said["log"], None)
        show_place(said["mend"])
        if said["log"] is None:
            say("there is no log: nothing was said, or nothing has failed")


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A run's id, a unique beginning of an id, or `last`.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The run to compare it with.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Compare two runs: sources, the gates that differ, and times with their intervals.

    Example: forge run diff 20260101T120000_rmsnorm_cpu_1f00aa last
    """
    from forge.app.runs.run_comparison import compare_runs
    from forge.cli.run_diff import show_comparison

    found = ask_at_head(home, lambda head: compare_runs(head, head.run_documents(a), head.run_documents(b)))
    if found is None:
        from forge.app.plain_events import OfWorkspace
        from forge.app.stored.run_documents import of_state

        with open_workspace(home) as workspace:
            before, after = of_state(workspace.find_run(a)), of_state(workspace.find_run(b))
            found = compare_runs(OfWorkspace(workspace), before, after)
    if as_json:
        emit_json(found)
    else:
        show_comparison(found)


@app.command()
def check(run: Run, home: Home = None, as_json: Json = False) -> None:
    """Compare a sealed run's directory with the manifest that the ledger names.

    Example: forge run check last
    """
    from forge.app.stored.run_files import check_run
    from forge.app.user.home import RUNS_FOLDER

    run_id, problems = ask_run(
        home, run, lambda opened, found: (found.run_id, check_run(opened.home / RUNS_FOLDER, found))
    )
    rows = [(problem["kind"], problem["path"]) for problem in problems] or [("ok", "as it was sealed")]
    document = {"run_id": run_id, "ok": not problems, "problems": problems}
    emit_answer(document, run_id, ("", "file"), rows, as_json=as_json)
    if problems:
        suggest("try", "forge ledger verify")
        raise typer.Exit(1)


@app.command()
def abort(
    run: Run,
    reason: Annotated[str, typer.Option(help="Reason; it is recorded.")] = "closed by hand",
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Close a run without an outcome.

    Example: forge run abort last --reason "wrong shape"
    """
    from forge.app.runs.states import abort as close

    with open_workspace(home) as workspace:
        state = workspace.find_run(run)
        close(workspace, state, reason)
    rows = [(state.run_id, "aborted")]
    emit_answer({"run_id": state.run_id, "state": "aborted"}, "Run", ("run", "state"), rows, as_json=as_json)
