"""profile: a profiler's figures for a verified candidate's kernels."""

from typing import Annotated, Any

import typer

from forge.cli.opening import open_workspace
from forge.cli.options import DeviceName, Home, Json, Run
from forge.cli.output import emit_json, emit_table, say
from forge.cli.progress import reporting

ToolName = Annotated[
    str | None,
    typer.Option(
        help="ncu: counters, on the target GPU. torch: time by operator. cuobjdump: machine code, without a GPU. "
        "Default: ncu if it is installed, else torch."
    ),
]


def profile(
    run: Run, tool: ToolName = None, device: DeviceName = None, home: Home = None, as_json: Json = False
) -> None:
    """Show the bottleneck of a verified candidate's kernels. No verdict uses it.

    Example: forge profile last --tool cuobjdump
    """
    from forge.app.machine.chosen_device import chosen_device
    from forge.app.phases.profile import profile_candidate

    chosen_device(device)
    with open_workspace(home) as workspace, reporting("profile") as progress:
        answer = profile_candidate(workspace, workspace.find_run(run), untrusted_tool=tool, progress=progress)
    if as_json:
        emit_json(answer)
        return
    _show(answer["report"])


def _show(report: Any) -> None:  # Any: a JSON document, taken apart for people
    for kernel in (*report.get("kernels", ()), *report.get("code", ())):
        emit_table(kernel["name"], ("", ""), [(name, value) for name, value in kernel.items() if name != "name"])
    if operators := report.get("operators"):
        columns = ("operator", "calls", "own time, us a call", "on the GPU, us a call")
        emit_table("by torch's profiler, whose own cost is included", columns, [_per_call(one) for one in operators])
    if found := report.get("diagnosis"):
        read = ", ".join(f"{name} {value:.4g}" for name, value in found["evidence"].items())
        say(f"bottleneck: {found['bottleneck']}, because {found['rule']} ({read})")


def _per_call(operator: Any) -> tuple[object, ...]:  # Any: a JSON document
    calls = max(1, operator["calls"])
    times = (f"{operator[key] / calls / 1000:.2f}" for key in ("self_ns", "device_ns"))
    return operator["name"], operator["calls"], *times
