"""Kernels: what the registry offers."""

from typing import Annotated, Any

import typer

from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_table, shape_text

app = typer.Typer(help="Kernels: what was promoted.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_kernels(home: Home = None, as_json: Json = False) -> None:
    """List every kernel version with its status.

    Example: forge kernel list
    """
    from forge.app.reads import kernels

    with open_workspace(home) as workspace:
        entries: list[dict[str, Any]] = kernels(workspace)  # Any: a JSON document
    if as_json:
        emit_json(entries)
    else:
        rows = [
            (e["kernel_id"], e["status"], shape_text(e["shape"]), f"{e['benchmark']['speedup']:.2f}x", e["baseline"])
            for e in entries
        ]
        emit_table("Kernels", ("kernel", "status", "shape", "speedup", "over"), rows)


@app.command()
def show(
    kernel_id: Annotated[str, typer.Argument(help="A kernel's full id.")], home: Home = None, as_json: Json = False
) -> None:
    """Show one kernel's registry entry: every number, and the event it stands in.

    Example: forge kernel show cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1
    """
    from forge.app.reads import find_kernel

    with open_workspace(home) as workspace:
        entry = find_kernel(workspace, kernel_id)
    if as_json:
        emit_json(entry)
    else:
        emit_table("Kernel", ("", ""), [(key, value) for key, value in entry.items() if value is not None])
