"""The ledger: read it, check it, sign it, prove from it, rebuild the published files."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli import ledger_copies, ledger_key
from forge.cli.confirming import DryRun, Yes, require_yes, say_dry_run
from forge.cli.document import show_facts
from forge.cli.group import CommandGroup
from forge.cli.lists import NEWEST_EVENTS, show_events, show_newest_events
from forge.cli.opening import ask_at_head, ask_events, open_workspace
from forge.cli.options import MOST_EVENTS, Home, Json
from forge.cli.output import emit_answer, emit_json, emit_table, say
from forge.cli.signing_notes import say_unvouched
from forge.cli.suggest import suggest

app = typer.Typer(
    help="The ledger: the append-only record that everything else is derived from.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for name, command in ledger_copies.COMMANDS.items():
    app.command(name)(command)
TrustedKey = Annotated[
    str | None,
    typer.Option(
        help="The verifier key to trust, or a file with it. The report says how many events it vouches for.",
        show_default=False,
    ),
]
app.add_typer(ledger_key.app, name="key", cls=CommandGroup)

_FULL = (
    "Also compute every number again from its samples, check the published files, hash blobs that no event names, "
    "and list all problems."
)
"""Help text of `--full` in `forge ledger verify`."""

Data = dict[str, Any]  # Any: a JSON document


def show_report(report: Data) -> None:
    """Print the report of a check of the ledger as tables."""
    state = "ok" if report["ok"] else "BROKEN"
    rows = [(state, report["events"], report["signed"], report["root"], report["head"])]
    emit_table("Ledger", ("verdict", "events", "signed up to event", "root", "head"), rows)
    if report["keys"]:
        named = [(one["seq"], one["key"], _by(one), _signed(one)) for one in report["keys"]]
        emit_table("Keys", ("named at event", "key", "named by", "first to sign events"), named)
    given = report["checkpoint"]
    if given:
        columns = ("against", "size", "root", "verdict")
        emit_table("Checkpoint", columns, [(given["origin"], given["size"], given["root"], given["verdict"])])
    if report["verdict"]:
        vouched = (report["verdict"], report["vouched_for"], report["unvouched"])
        emit_table("The key that is trusted", ("verdict", "vouches for events", "events beyond"), [vouched])
    if report["problems"]:
        problems = [(p["seq"], p["what"], p["expected"], p["found"]) for p in report["problems"]]
        emit_table("", ("seq", "what", "expected", "found"), problems)
    if not report["keys"] and report["events"]:
        say("note: no key signs this ledger: its owner can rewrite all of it")
    say_unvouched([one["seq"] for one in report["keys"] if not one["vouched"]])


def _by(key: Data) -> str:
    if key["how"] == "rotated":
        return "the key before it"
    return "the ledger's owner, as its first key" if key["vouched"] else "a person; the key before it didn't sign"


def _signed(key: Data) -> str:
    return "none" if key["first"] is None else f"{key['first']} to {key['last']}"


@app.command()
def log(
    after: Annotated[
        int | None,
        typer.Option(help="Start after this sequence number.", min=0, max=MOST_EVENTS, show_default=False),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Largest number of events.", min=1, max=MOST_EVENTS, show_default=False)
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(help="Show only the newest N events.", min=1, max=MOST_EVENTS, show_default=False),
    ] = None,
    of_type: Annotated[
        list[str] | None,
        typer.Option("--type", help="Only events of this type; may be repeated.", show_default=False),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show events in order, the oldest first. A table has the newest 50, unless an option says which.

    Example: forge ledger log --type KernelPromoted --last 20
    """
    from forge.app.ledger.ledger_answers import recorded_events

    with open_workspace(home) as workspace:
        types = tuple(of_type) if of_type else None
        events: list[dict[str, Any]] = recorded_events(
            workspace, after_seq=after or 0, limit=limit, types=types
        )  # Any: JSON
    events = events if last is None else events[-last:]
    if as_json:
        emit_json(events)
    elif all(one is None for one in (after, limit, last, of_type)):
        show_newest_events(events[-NEWEST_EVENTS:])
    else:
        show_events(events)


@app.command()
def verify(
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="A checkpoint that you kept elsewhere. It shows whether events were cut off or rewritten.",
            show_default=False,
        ),
    ] = None,
    key: TrustedKey = None,
    full: Annotated[bool, typer.Option("--full", help=_FULL)] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Check the whole ledger again from its raw rows: chain, Merkle root, signatures, blobs, sealed runs.

    The workspace's published checkpoint is compared too. With --key, exit status 1 if the key doesn't vouch for all
    checkpoints and decisions. A key that it names as its successor counts as well.

    Example: forge ledger verify --checkpoint kept/checkpoint
    """
    from forge.app.ledger.ledger_answers import verify_ledger
    from forge.app.user.home import find_home

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
            "the key doesn't vouch for the rest: trust only the events that it vouches for. Ask its owner, by "
            "another channel, which key follows it, and check with that one"
        )
    if problem["found"] == "truncated":
        return "events that were signed are missing: restore kernel_registry.db from a copy, then check again"
    if problem["what"].startswith("published "):
        return "publish the files again: forge ledger rebuild"
    if problem["what"] == "key" or problem["found"] == "other_ledger":
        return "the key or the checkpoint belongs to another ledger: give one of this ledger, then check again"
    return "restore kernel_registry.db and forge_runs/ from a copy, then check again"


@app.command()
def checkpoint(
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Begin to sign with a new key, if this ledger has none or lost it.")
    ] = False,
    copy: Annotated[
        Path | None,
        typer.Option(help="Also write the note to this file. Keep it on another machine.", show_default=False),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Sign the ledger's current size and root, and publish the note.

    Example: forge ledger checkpoint --copy kept/checkpoint
    """
    from forge.app.ledger import signing

    with open_workspace(home) as workspace:
        issued: dict[str, Any] = signing.checkpoint(workspace, new_key=new_key, copy=copy)  # Any: JSON
    show_facts(issued, "Checkpoint", as_json=as_json)
    say_unvouched(issued["unvouched_adoptions"])


@app.command("rotate-key")
def rotate_key(yes: Yes = False, dry_run: DryRun = False, home: Home = None, as_json: Json = False) -> None:
    """Let the signing key name its successor; the next checkpoint is signed by both.

    Example: forge ledger rotate-key
    """
    from forge.app.ledger import signing

    require_yes("Let another key sign this ledger from now on?", yes=yes or dry_run)
    with open_workspace(home) as workspace:
        issued: dict[str, Any] = signing.rotate_key(workspace, dry_run=dry_run)
    if dry_run:
        show_facts(issued, "Rotation", as_json=as_json)
        say_dry_run()
        return
    show_facts(issued, "Checkpoint", as_json=as_json)
    say_unvouched(issued["unvouched_adoptions"])
    say("tell all who trust the old key: ledger.vkey has the new one, and an event that the old one signed names it")


@app.command()
def prove(
    kernel_id: Annotated[str, typer.Argument(help="A kernel's full id.")],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write. Default: KERNEL_ID.tlog-proof in the current folder.", show_default=False),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write a proof of a kernel's promotion that anyone can check without this workspace.

    Example: forge ledger prove cpp_fused_add_rmsnorm_cpu_fp32_b16_h4096_v1
    """
    from forge.app.kernels.kernel_history import kernel_history
    from forge.app.ledger.promotion_proof import prove_promotion
    from forge.app.user.home import REGISTRY_FOLDER, find_home

    found = ask_at_head(home, lambda head: prove_promotion(head, kernel_id, out=out))
    if found is None:
        from forge.app.ledger.signing import prove_with_checkpoint

        with open_workspace(home) as workspace:
            found = prove_with_checkpoint(workspace, kernel_id, out=out)
    proved: dict[str, Any] = found  # Any: a JSON document
    published = find_home(home) / REGISTRY_FOLDER
    artifact, key = published / "kernels" / kernel_id / "kernel.py", published / "ledger.vkey"
    show_facts(proved, "Proof", as_json=as_json)
    say_unvouched(proved["unvouched_adoptions"])
    status = ask_events(home, lambda events: kernel_history(events, kernel_id))["status"]
    if status != "active":
        say(f"note: this kernel is {status} now; the proof shows its promotion, and not that")
    words = ("forge", "verify-proof", proved["proof"], "--artifact", artifact, "--key", key)
    suggest("next", shlex.join(map(str, words)))


@app.command()
def rebuild(home: Home = None, as_json: Json = False) -> None:
    """Write every published file again from the whole ledger, and say which files differed.

    Example: forge ledger rebuild
    """
    with open_workspace(home) as workspace:
        compared = workspace.publication.build_anew()
    rows = [(one["file"], one["state"]) for one in compared]
    emit_answer({"files": compared}, "Projections", ("file", "state"), rows, as_json=as_json)
