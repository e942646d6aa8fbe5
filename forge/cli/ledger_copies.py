"""Commands of the ledger that make copies, import other ledgers, and repair the workspace after a crash."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli.confirming import DryRun, say_dry_run
from forge.cli.document import show_facts
from forge.cli.opening import ask_events, open_workspace, told
from forge.cli.options import MOST_EVENTS, Home, Json
from forge.cli.output import emit_json, emit_table, say
from forge.cli.progress import reporting
from forge.cli.signing_notes import NEW_KEY
from forge.cli.suggest import suggest


def recover(
    abort_open: Annotated[
        bool, typer.Option("--abort-open", help="Also close every run that is still open.")
    ] = False,
    dry_run: DryRun = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Repair what killed processes left: half-written files, runs to seal or close, outdated published files.

    Example: forge ledger recover
    """
    from dataclasses import asdict

    from forge.app.kernels.decisions import NOT_RECORDED
    from forge.app.ledger.recovery import recover as put_right
    from forge.app.user.home import find_home
    from forge.app.workspace import Workspace

    with Workspace.open(find_home(home)) as workspace:
        found = put_right(workspace, abort_open=abort_open, dry_run=dry_run)
    if as_json:
        emit_json((NOT_RECORDED if dry_run else {}) | asdict(found))
    else:
        rows = [(line,) for line in told(found, dry_run=dry_run)] or [("nothing to repair",)]
        emit_table(
            "Would be repaired" if dry_run else "Recovery", ("",), rows if found.alone else [("nothing was touched",)]
        )
        for run_id in found.unknown:
            say(f"note: the ledger knows nothing of the open run {run_id}; its folder was left as it is")
    if not found.alone:
        say("another process works in this workspace, so nothing was repaired; run this again when it has ended")
        suggest("try", "forge ledger recover")
        raise typer.Exit(1)
    if dry_run:
        say_dry_run()


def backup(
    target: Annotated[Path, typer.Argument(metavar="DEST", help="The folder to write. It must not exist.")],
    with_key: Annotated[
        bool, typer.Option("--with-key", help="Include the private key. Anyone who has the backup can then sign.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Copy the whole workspace at one moment and check the copy; other processes may go on writing.

    Example: forge ledger backup ../backups/monday
    """
    from forge.app.ledger.backup import back_up
    from forge.app.user.home import find_home
    from forge.app.workspace import Workspace

    with Workspace.open(find_home(home), read_only=True) as workspace, reporting("backup") as progress:
        made = back_up(workspace, target, with_key=with_key, progress=progress)
    show_facts(made, "Backup", as_json=as_json)


def restore(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A folder that `forge ledger backup` made.")],
    directory: Annotated[Path, typer.Argument(help="The folder of the new workspace.")] = Path(),
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Restore even if the backup lacks events that were signed here. A new key then signs.",
        ),
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Check a backup, make a workspace from it, and record that a new epoch of its ledger begins.

    Example: forge ledger restore ../backups/monday my-kernels
    """
    from forge.app.ledger.restore import restore as go_on_from
    from forge.app.user.user_paths import resolved

    with reporting("restore") as progress:
        done = go_on_from(source, resolved(directory), accept_loss=accept_loss, dry_run=dry_run, progress=progress)
    show_facts(done, "Would be restored" if dry_run else "Workspace", as_json=as_json)
    if not done["signs"]:
        say(f"note: the private key isn't here, so nothing is signed: {NEW_KEY}")
    if dry_run:
        if done["unchecked"] is not None:
            say(f"note: {done['unchecked']} is there already: a restore keeps its files, and checks them then")
        say_dry_run()


def export(
    target: Annotated[
        Path, typer.Argument(metavar="FILE", help="The bundle to write. An existing file is replaced.")
    ],
    since: Annotated[int, typer.Option(help="Only events after this sequence number.", min=0, max=MOST_EVENTS)] = 0,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write events, the blobs they name and a signed checkpoint into one file, for another machine.

    Example: forge ledger export kernels.bundle
    """
    from forge.app.ledger import bundles

    with open_workspace(home) as workspace, reporting("export") as progress:
        made = bundles.export(workspace, target, since=since, progress=progress)
    show_facts(made, "Bundle", as_json=as_json)
    suggest("next", "forge ledger import --help")


def import_(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A bundle that `forge ledger export` wrote.")],
    key: Annotated[
        str | None,
        typer.Option(
            help="The verifier key that must vouch for it, or a file with it. Get it by another channel.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Check a bundle completely, then keep its events as evidence beside this ledger's own history.

    Example: forge ledger import kernels.bundle --key ledger.vkey
    """
    from forge.app.ledger import bundles

    with open_workspace(home) as workspace, reporting("import") as progress:
        done = bundles.take_in(workspace, source, key=key, dry_run=dry_run, progress=progress)
    show_facts(done, "Would be imported" if dry_run else "Imported", as_json=as_json)
    if done["key_trusted_from"] == "the bundle itself":
        say(
            f"WARNING: no --key was given, so only the bundle itself vouches for its key {done['key']}. Anyone can "
            "make such a bundle: ask the ledger's owner for the key by another channel, and compare"
        )
    if dry_run:
        say_dry_run()
    else:
        suggest("next", "forge ledger imported")


def imported(home: Home = None, as_json: Json = False) -> None:
    """List imported ledgers and their promoted kernels. A lookup never returns these kernels.

    Example: forge ledger imported
    """
    from forge.app.ledger.imported_ledgers import imported as listed

    ledgers: list[dict[str, Any]] = ask_events(home, listed)  # Any: JSON
    if as_json:
        emit_json(ledgers)
        return
    emit_table(
        "Imported ledgers", ("origin", "ledger", "events", "root"), [_row(one, "size", "root") for one in ledgers]
    )
    promoted = [(one["origin"], *_values(kernel)) for one in ledgers for kernel in one["promotions"]]
    emit_table("Promoted there", ("origin", "seq", "recorded at", "kernel", "status"), promoted)


def _row(ledger: dict[str, Any], *names: str) -> tuple[object, ...]:  # Any: a JSON document
    return (ledger["origin"], ledger["ledger_id"], *(ledger[name] for name in names))


def _values(kernel: dict[str, Any]) -> tuple[object, ...]:  # Any: a JSON document
    return (kernel["seq"], kernel["recorded_at"][:19], kernel["kernel_id"], kernel["status"])


COMMANDS: dict[str, Callable[..., None]] = {
    "recover": recover,
    "backup": backup,
    "restore": restore,
    "export": export,
    "import": import_,
    "imported": imported,
}
"""Commands of this file by name, in the order of the help."""
