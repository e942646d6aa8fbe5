"""The ledger: read it, check it, sign it, prove from it, fold it again."""

from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli import ledger_copies, ledger_key
from forge.cli.opening import open_workspace
from forge.cli.options import MOST_EVENTS, Home, Json
from forge.cli.output import emit_json, emit_table, say, short
from forge.cli.signed import say_unvouched
from forge.cli.suggest import suggest
from forge.cli.verified import show_report

app = typer.Typer(help="The ledger: the only authority, append-only.", no_args_is_help=True, rich_markup_mode=None)
ledger_copies.register(app)
TrustedKey = Annotated[
    str | None,
    typer.Option(
        help="The verifier key to trust, or a file with it: says for how many events it vouches.", show_default=False
    ),
]
app.add_typer(ledger_key.app, name="key")

_FULL = (
    "Also work every number out again from its samples, check what is published, hash blobs that no event names, "
    "and list every problem."
)
"""What `--full` adds to `forge ledger verify`."""


@app.command()
def log(
    after: Annotated[int, typer.Option(help="Start behind this sequence number.", min=0, max=MOST_EVENTS)] = 0,
    limit: Annotated[
        int | None, typer.Option(help="At most so many events.", min=1, max=MOST_EVENTS, show_default=False)
    ] = None,
    of_type: Annotated[
        list[str] | None,
        typer.Option("--type", help="Only events of this type; may be repeated.", show_default=False),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show events in order.

    Example: forge ledger log --type KernelPromoted
    """
    from forge.app import reads

    with open_workspace(home) as workspace:
        types = tuple(of_type) if of_type else None
        events: list[dict[str, Any]] = reads.log(workspace, after_seq=after, limit=limit, types=types)  # Any: JSON
    if as_json:
        emit_json(events)
    else:
        rows = [
            (e["seq"], e["recorded_at"][:19], e["type"], e["stream"][:60], e["actor"], short(e["event_hash"]))
            for e in events
        ]
        emit_table("Ledger", ("seq", "recorded at", "type", "stream", "actor", "hash"), rows)


@app.command()
def verify(
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="A checkpoint that was kept elsewhere: shows what was cut off or rewritten.", show_default=False
        ),
    ] = None,
    key: TrustedKey = None,
    full: Annotated[bool, typer.Option("--full", help=_FULL)] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Derive the whole ledger again from raw rows: chain, Merkle root, signatures, blobs, sealed runs.

    The checkpoint that the workspace published is held against it too. With --key, exit status 1 if checkpoints or
    decisions lie beyond what that key, or one that it names by rotation, vouches for.

    Example: forge ledger verify --checkpoint kept/checkpoint
    """
    from forge.app.reads import verify_ledger
    from forge.app.workspace import find_home

    report: dict[str, Any] = verify_ledger(  # Any: a JSON document
        find_home(home), checkpoint=checkpoint, key=key, full=full
    )
    if as_json:
        emit_json(report)
    else:
        show_report(report)
    if not report["ok"]:
        for advice in dict.fromkeys(map(_advice, report["problems"])):
            say(advice)
        suggest("try", "forge ledger restore --help")
        raise typer.Exit(1)


def _advice(problem: dict[str, Any]) -> str:  # Any: a JSON document
    if problem["what"] == "format" or "upgrade" in problem["found"]:
        return "another version of Forge wrote this ledger: check it with that one"
    if problem["what"] == "vouched for":
        return (
            "the key doesn't vouch for the rest: ask its owner by another way which key follows it, and check with "
            "that one; without such word, believe the events that it vouches for and no more"
        )
    if problem["found"] == "truncated":
        return "events that were signed are missing: restore kernel_registry.db from a copy, then check again"
    if problem["what"].startswith("published "):
        return "fold what is published again: forge ledger rebuild"
    if problem["what"] == "key" or problem["found"] == "other_ledger":
        return "the key or the checkpoint is of another log: give one that was kept of this, then check again"
    return "restore kernel_registry.db and forge_runs/ from a copy, then check again"


@app.command()
def checkpoint(
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Begin to sign with a new key: this ledger has none, or lost it.")
    ] = False,
    copy: Annotated[
        Path | None, typer.Option(help="Also write the note to this file, to be kept elsewhere.", show_default=False)
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Sign the ledger's size and root as they stand now, and publish the note.

    Example: forge ledger checkpoint --copy kept/checkpoint
    """
    from forge.app import signing

    with open_workspace(home) as workspace:
        issued: dict[str, Any] = signing.checkpoint(workspace, new_key=new_key, copy=copy)  # Any: JSON
    _show(issued, "Checkpoint", as_json=as_json)
    say_unvouched(issued["unvouched_adoptions"])


@app.command("rotate-key")
def rotate_key(home: Home = None, as_json: Json = False) -> None:
    """Let the signing key name its successor; the next checkpoint is signed by both.

    Example: forge ledger rotate-key
    """
    from forge.app import signing

    with open_workspace(home) as workspace:
        issued: dict[str, Any] = signing.rotate_key(workspace)
    _show(issued, "Checkpoint", as_json=as_json)
    say_unvouched(issued["unvouched_adoptions"])
    say("tell those who trust the old key: the new one is in ledger.vkey, named by an event that the old one signed")


@app.command()
def prove(
    kernel_id: Annotated[str, typer.Argument(help="A kernel's full id.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write it; KERNEL_ID.tlog-proof in this folder by default.", show_default=False),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write a proof of a kernel's promotion that a stranger can check without this workspace.

    Example: forge ledger prove cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1
    """
    from forge.app import signing

    with open_workspace(home) as workspace:
        proved: dict[str, Any] = signing.prove_promotion(workspace, kernel_id, out=out)
    _show(proved, "Proof", as_json=as_json)
    say_unvouched(proved["unvouched_adoptions"])
    if proved["revoked"]:
        say("note: this kernel was revoked later, which the proof doesn't say")
    suggest("next", "forge verify-proof --help")


def _show(document: dict[str, Any], title: str, *, as_json: bool) -> None:  # Any: a JSON document
    if as_json:
        emit_json(document)
    else:
        emit_table(title, ("", ""), [(name, value) for name, value in document.items() if value is not None])


@app.command()
def rebuild(home: Home = None, as_json: Json = False) -> None:
    """Fold every published projection again from zero, and say which files differed.

    Example: forge ledger rebuild
    """
    from forge.app import reads

    with open_workspace(home) as workspace:
        compared = reads.rebuild(workspace)
    if as_json:
        emit_json({"files": compared})
    else:
        emit_table("Projections", ("file", "state"), [(one["file"], one["state"]) for one in compared])
