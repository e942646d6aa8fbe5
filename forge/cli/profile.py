"""profile: what a tool sees of a verified candidate's kernels."""

from typing import Annotated, Any

import typer

from forge.cli.opening import open_workspace
from forge.cli.options import DeviceName, Home, Json, Run
from forge.cli.output import emit_json, emit_table, reporting, say

ToolName = Annotated[
    str, typer.Option(help="ncu: counters, on the target GPU; cuobjdump: the machine code, anywhere.")
]


def register(app: typer.Typer) -> None:
    """Add this command to the top level."""
    app.command()(profile)


def profile(
    run: Run, tool: ToolName = "ncu", device: DeviceName = None, home: Home = None, as_json: Json = False
) -> None:
    """Show what holds a verified candidate's kernels back; takes no part in any verdict.

    Example: forge profile last --tool cuobjdump
    """
    from forge.app.device import chosen_device
    from forge.app.profile import profile_candidate

    chosen_device(device)
    with open_workspace(home) as workspace, reporting("profile") as progress:
        answer = profile_candidate(workspace, workspace.find_run(run), untrusted_tool=tool, progress=progress)
    if as_json:
        emit_json(answer)
        return
    report: Any = answer["report"]  # Any: a JSON document, taken apart for people
    for kernel in report.get("kernels") or report["code"]:
        emit_table(kernel["name"], ("", ""), [(name, value) for name, value in kernel.items() if name != "name"])
    if found := report.get("diagnosis"):
        read = ", ".join(f"{name} {value:.4g}" for name, value in found["evidence"].items())
        say(f"bottleneck: {found['bottleneck']}, since {found['rule']} ({read})")
