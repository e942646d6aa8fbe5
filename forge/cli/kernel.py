"""Kernels: list, explain, export, deprecate and revoke what was promoted."""

from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli.confirming import DryRun, Yes, require_yes, say_dry_run
from forge.cli.document import emit_document
from forge.cli.kernel_summary import show_summary
from forge.cli.lists import Asked, show_kernels
from forge.cli.opening import ask_at_head, ask_events, open_workspace
from forge.cli.options import Home, Json, Limit, OnlyGpu, OnlyOp, Sort
from forge.cli.output import emit_answer, emit_json, short
from forge.cli.signing_notes import say_if_unsigned
from forge.cli.suggest import suggest

app = typer.Typer(help="Kernels: promoted candidates.", no_args_is_help=True, rich_markup_mode=None)
KernelId = Annotated[str, typer.Argument(help="A kernel's full id.")]
Reason = Annotated[str, typer.Option(help="Reason. It is recorded with your name.")]


@app.command("list")
def list_kernels(
    op: OnlyOp = None,
    gpu: OnlyGpu = None,
    status: Annotated[
        str | None, typer.Option(help="Only kernels with this status, such as active or revoked.", show_default=False)
    ] = None,
    sort: Sort = None,
    limit: Limit = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """List every kernel version with its status.

    Example: forge kernel list --status active --sort -speedup --limit 10
    """
    from forge.app.kernels.answers import kernels

    with open_workspace(home) as workspace:
        found: list[dict[str, Any]] = kernels(workspace)  # Any: a JSON document
    show_kernels(found, Asked(sort=sort, limit=limit, as_json=as_json), op=op, gpu=gpu, status=status)


@app.command()
def show(
    kernel_id: KernelId,
    everything: Annotated[bool, typer.Option("--all", help="Print every number of the entry.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show what a kernel answers, its speed over each baseline, and the requirements that it met.

    With --all or --json it shows the whole registry entry: every number, and the event that recorded it.

    Example: forge kernel show cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1
    """
    entry = ask_at_head(home, lambda head: head.kernel(kernel_id))
    if entry is None:
        from forge.app.kernels.answers import find_kernel

        with open_workspace(home) as workspace:
            entry = find_kernel(workspace, kernel_id)
    if as_json:
        emit_json(entry)
    elif everything:
        emit_document("Kernel", entry)
    else:
        show_summary(entry)


@app.command()
def history(kernel_id: KernelId, home: Home = None, as_json: Json = False) -> None:
    """Show all events that led to a kernel, and all since, with hashes.

    Example: forge kernel history cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1
    """
    from forge.app.kernels.kernel_history import kernel_history

    found: dict[str, Any] = ask_events(home, lambda events: kernel_history(events, kernel_id))  # Any: JSON
    columns = ("seq", "recorded at", "event", "", "actor", "hash")
    rows = [
        (e["seq"], e["recorded_at"][:19], e["type"], e["what"], e["actor"], short(e["event_hash"]))
        for e in found["events"]
    ]
    emit_answer(found, f"{kernel_id}: {found['status']}", columns, rows, as_json=as_json)


@app.command()
def claims(kernel_id: KernelId, home: Home = None, as_json: Json = False) -> None:
    """Write the sentences about a kernel that its evidence supports, each with its event.

    Example: forge kernel claims cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1
    """
    from forge.app.claims import kernel_claims
    from forge.app.user.home import find_home

    found: dict[str, Any] = kernel_claims(find_home(home), kernel_id)  # Any: a JSON document
    rows = [(one["about"], one["text"]) for one in found["sentences"]]
    emit_answer(found, kernel_id, ("about", "sentence"), rows, as_json=as_json)
    suggest("next", "forge claims check FILE")


@app.command()
def export(
    kernel_id: KernelId,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder to write. It must be empty or not exist.")
    ],
    revoked_too: Annotated[
        bool,
        typer.Option("--revoked-too", help="Export even if the kernel was revoked or its evidence was withdrawn."),
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write a kernel's sources, built files, launch plan and registry entry to a folder, with their digests.

    Example: forge kernel export cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1 exported
    """
    from forge.app.kernel_export import export_kernel

    with open_workspace(home) as workspace:
        exported: dict[str, Any] = export_kernel(workspace, kernel_id, folder, revoked_too=revoked_too)  # Any: JSON
    rows = [(name, short(digest)) for name, digest in exported["files"].items()]
    title = f"{kernel_id} ({exported['status']}) in {exported['folder']}"
    emit_answer(exported, title, ("file", "sha256"), rows, as_json=as_json)
    suggest("next", f"forge ledger prove {kernel_id}")


@app.command()
def revoke(
    kernel_id: KernelId,
    reason: Reason,
    severity: Annotated[
        str, typer.Option(help="Kind of reason: wrong_result, unsafe, evidence_invalid or withdrawn.")
    ] = "withdrawn",
    evidence: Annotated[
        list[str] | None,
        typer.Option(
            help="An event's number, or a file, of which a copy is kept; may be repeated.", show_default=False
        ),
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Revoke a kernel permanently: no lookup returns it any more, and its id is never used again.

    Example: forge kernel revoke KERNEL_ID --reason "wrong at odd widths" --severity wrong_result --evidence 71
    """
    from forge.app.kernels import decisions

    require_yes(f"Revoke {kernel_id}?", yes=yes or dry_run)
    with open_workspace(home) as workspace:
        decided = decisions.revoke(
            workspace,
            kernel_id,
            reason=reason,
            severity=severity,
            evidence=tuple(evidence or ()),
            dry_run=dry_run,
        )
    _show_decision("revoked", kernel_id, decided, dry_run=dry_run, as_json=as_json)


@app.command()
def deprecate(
    kernel_id: KernelId,
    reason: Reason,
    superseded_by: Annotated[
        str | None, typer.Option("--superseded-by", help="The kernel to use instead.", show_default=False)
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Mark a kernel as correct but outdated. A lookup returns it only with --deprecated.

    Example: forge kernel deprecate KERNEL_ID --reason "slower on the new driver" --superseded-by OTHER_ID
    """
    from forge.app.kernels import decisions

    require_yes(f"Deprecate {kernel_id}?", yes=yes or dry_run)
    with open_workspace(home) as workspace:
        decided = decisions.deprecate(
            workspace, kernel_id, reason=reason, superseded_by=superseded_by, dry_run=dry_run
        )
    _show_decision("deprecated", kernel_id, decided, dry_run=dry_run, as_json=as_json)


@app.command()
def doubt(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A report that an adopted program wrote.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Record that a program found a wrong answer of a kernel. It decides nothing; forge audit doubts lists it.

    Example: forge kernel doubt doubts/forge-doubt-1.json
    """
    from forge.app.kernels.doubts import record_doubt

    with open_workspace(home) as workspace:
        recorded = record_doubt(workspace, file)
    _show("Doubted", recorded, as_json=as_json)
    suggest("next", "forge audit doubts")


@app.command()
def keep(kernel_id: KernelId, reason: Reason, home: Home = None, as_json: Json = False) -> None:
    """Answer the open doubts about a kernel with the reason why it stays on offer.

    Example: forge kernel keep KERNEL_ID --reason "the program's memory was faulty"
    """
    from forge.app.kernels.doubts import keep as kept

    with open_workspace(home) as workspace:
        recorded = kept(workspace, kernel_id, reason=reason)
    _show("Kept", recorded, as_json=as_json)


# Any: a JSON document
def _show_decision(said: str, kernel_id: str, decided: dict[str, Any], *, dry_run: bool, as_json: bool) -> None:
    """Print what was decided about a kernel, or would be."""
    if dry_run:
        _show(f"Would be {said}", decided, as_json=as_json)
        say_dry_run()
        return
    _show(said.capitalize(), decided, as_json=as_json)
    say_if_unsigned(decided)
    suggest("next", f"forge kernel history {kernel_id}")


def _show(title: str, document: dict[str, Any], *, as_json: bool) -> None:  # Any: a JSON document
    rows = [(name, value) for name, value in document.items() if value is not None]
    emit_answer(document, title, ("", ""), rows, as_json=as_json)
