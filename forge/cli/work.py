"""Work on request: ask for a run's phases, list and withdraw requests, and serve them as a worker."""

import sys
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from forge.cli.lists import show_requests
from forge.cli.opening import open_workspace
from forge.cli.options import Cluster, Home, JobsPerNode, Json, On, PlainNetwork, Run
from forge.cli.output import emit_answer, emit_json_line, say, visible
from forge.cli.side_by_side import GAVE_UP, serve_side_by_side
from forge.cli.suggest import suggest

app = typer.Typer(rich_markup_mode=None)

MOST_IN_A_ROW = 3
"""Number of jobs in a row that may fail by the machine's own fault; then a worker takes no more. Chosen; one failure
may pass, and each more wastes a job's time."""
Reason = Annotated[str, typer.Option(help="Reason; it is recorded.")]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="N",
        help="A GPU to serve, by nvidia-smi's index or UUID; repeat it to serve several side by side.",
        show_default=False,
    ),
]


@app.callback(invoke_without_command=True)
def work(
    context: typer.Context,
    once: Annotated[
        bool, typer.Option("--once", help="End when no request is left that can be served here.")
    ] = False,
    device: Devices = None,
    _on: On = None,
    ray: Cluster = None,
    plain_network: PlainNetwork = False,
    jobs_per_node: JobsPerNode = 1,
    ends_with: Annotated[int | None, typer.Option("--ends-with", metavar="PID", hidden=True)] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Serve requests: run the phases of each run that was asked for, the oldest request first.

    A worker waits for the next request until it is stopped. Several workers may serve one workspace.
    With --json it prints one document a line for each run that it worked on.

    Example: forge work --once
    """
    if context.invoked_subcommand is not None:
        return
    if ends_with is not None:
        from forge.app.work.ends_with_parent import end_with

        end_with(ends_with)
    if ray is not None:
        from forge.app.work.cluster import places_of

        found = places_of(ray, plain_network=plain_network, jobs_per_node=jobs_per_node)
        places = [("--on", place) for place in found]
        raise typer.Exit(max(serve_side_by_side(places, once=once, home=home, as_json=as_json)))
    if device and len(device) > 1:
        from forge.app.machine.chosen_device import devices_named
        from forge.app.runs.refused_requests import recording_refusal

        with open_workspace(home) as workspace, recording_refusal(workspace, "worker", ", ".join(device)):
            gpus = [("--device", one.uuid) for one in devices_named(device)]
        raise typer.Exit(max(serve_side_by_side(gpus, once=once, home=home, as_json=as_json)))
    raise typer.Exit(_serve(device[0] if device else None, once=once, home=home, as_json=as_json))


def _serve(device: str | None, *, once: bool, home: Path | None, as_json: bool) -> int:
    """Serve with one device in this process; return 1 if a job failed by its fault, GAVE_UP after too many."""
    from forge.app.machine.chosen_device import chosen_device
    from forge.app.machine.chosen_executor import executor_of
    from forge.app.runs.refused_requests import recording_refusal
    from forge.app.work.worker import Worker
    from forge.lab.packages import require_lab

    require_lab()
    with open_workspace(home) as workspace:
        with recording_refusal(workspace, "worker", device or "any"):
            chosen_device(device)
        environment = executor_of(workspace).site(workspace.policy).environment
    worker = Worker(lambda: open_workspace(home), _progress_of, gpu=environment.gpu)
    if not once:
        say(f"work: waiting for requests on {environment.gpu.slug if environment.gpu else 'the processor'}")
    failed, in_a_row = False, 0
    for summary in worker.work_off() if once else worker.serve():
        failed = failed or summary["error"] is not None
        in_a_row = in_a_row + 1 if summary["error"] is not None else 0
        _show(summary, as_json=as_json)
        if in_a_row == MOST_IN_A_ROW:
            say(f"work: {in_a_row} jobs in a row failed on {_place()}, and not by their candidates: it gets no more")
            break
    if failed:
        suggest("try", "forge work list")
    return GAVE_UP if in_a_row == MOST_IN_A_ROW else int(failed)


def _place() -> str:
    from forge.app.machine.chosen_place import place_name

    return place_name()


def _progress_of(run_id: str) -> Any:  # Any: a function that prints one step
    return lambda step: say(f"{run_id}: {step}")


def _show(summary: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        emit_json_line(summary)
        return
    why = summary["error"] or summary["reason"] or {}
    told = " ".join(filter(None, (why.get("code"), why.get("message"), summary["kernel_id"])))
    sys.stdout.write(visible(f"{summary['run_id']}  {summary['state']}  {told}").rstrip() + "\n")
    sys.stdout.flush()


@app.command(hidden=True)
def answer() -> None:
    """Run the jobs that another machine's Forge sends by standard input, until it ends. `--on` starts it.

    Example: ssh gpu-box forge work answer
    """
    from forge.app.work.remote_calls import answer_calls

    answer_calls()


@app.command()
def request(
    run: Run,
    until: Annotated[
        str, typer.Option(metavar="PHASE", help="The last phase to run: verify, bench or promote.")
    ] = "promote",
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Ask workers to run the phases of a run that has a candidate.

    Example: forge work request last --until verify
    """
    from forge.app.work.requests import LastPhase, request_summary, request_work
    from forge.errors import UnknownName

    phases: dict[str, LastPhase] = {name: name for name in get_args(LastPhase)}
    if until not in phases:
        raise UnknownName("phase", until, list(phases))
    with open_workspace(home) as workspace:
        request_work(workspace, workspace.find_run(run), phases[until])
        summary = request_summary(workspace.find_run(run))
    emit_answer(summary, "Requested", ("", ""), list(summary.items()), as_json=as_json)
    suggest("next", "forge work --once")


@app.command("list")
def list_requests(home: Home = None, as_json: Json = False) -> None:
    """List the requests that no worker has answered, the oldest first.

    Example: forge work list
    """
    from forge.app.work.requests import open_requests, request_summary

    with open_workspace(home) as workspace:
        requests = [request_summary(run) for run in open_requests(workspace)]
    show_requests(requests, as_json=as_json)


@app.command()
def withdraw(run: Run, reason: Reason = "withdrawn by hand", home: Home = None, as_json: Json = False) -> None:
    """Withdraw a request; a worker that has begun a phase finishes it.

    Example: forge work withdraw last --reason "a better candidate is there"
    """
    from forge.app.work.requests import withdraw_work

    with open_workspace(home) as workspace:
        state = workspace.find_run(run)
        withdraw_work(workspace, state, reason)
    document = {"run_id": state.run_id, "withdrawn": True, "reason": reason}
    emit_answer(document, "Withdrawn", ("run", "reason"), [(state.run_id, reason)], as_json=as_json)
