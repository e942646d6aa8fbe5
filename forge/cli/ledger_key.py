"""Commands for the key that signs the ledger: show it, export it to another machine, import it."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli.document import show_facts
from forge.cli.opening import ask_events, open_workspace
from forge.cli.options import Home, Json
from forge.cli.output import say
from forge.cli.signing_notes import say_unvouched
from forge.cli.suggest import suggest
from forge.errors import UsageError

app = typer.Typer(help="The key that signs the ledger.", no_args_is_help=True, rich_markup_mode=None)

PassphraseFile = Annotated[
    Path | None,
    typer.Option(help="A file whose first line is the passphrase. Without it, the command asks.", show_default=False),
]


@app.command()
def show(home: Home = None, as_json: Json = False) -> None:
    """Show the current signing key, and whether its private key is here.

    Example: forge ledger key show
    """
    from forge.app.ledger.signing_key import shown_key

    _show(ask_events(home, shown_key), as_json=as_json)


@app.command()
def export(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; it must not exist.")],
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep signing here too. Two machines can then sign two different histories."),
    ] = False,
    passphrase_file: PassphraseFile = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write the signing key to an encrypted file, with the checkpoint it signed last, and stop signing here.

    Example: forge ledger key export ledger.forge-key
    """
    from forge.app.ledger import key_transfer

    passphrase = _passphrase(passphrase_file, confirm=True)
    with open_workspace(home) as workspace:
        made = key_transfer.export(workspace, target, passphrase, keep=keep)
    _show(made, as_json=as_json)
    if not keep:
        say("this workspace no longer signs: import the file on the machine that writes the ledger next")
    suggest("next", "forge ledger key import --help")


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `forge ledger key export` wrote.")],
    passphrase_file: PassphraseFile = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Import a signing key. It must be the current key, and this ledger must have all events that it signed.

    Example: forge ledger key import ledger.forge-key
    """
    from forge.app.ledger import key_transfer

    passphrase = _passphrase(passphrase_file, confirm=False)
    with open_workspace(home) as workspace:
        done = key_transfer.take_in(workspace, source, passphrase)
    _show(done, as_json=as_json)


def _passphrase(file: Path | None, *, confirm: bool) -> str:
    from forge.app.ledger.key_transfer import passphrase_in

    if file is not None:
        return passphrase_in(file)
    if not sys.stdin.isatty():
        raise UsageError("no passphrase, and no terminal to ask on: expected a file, given by --passphrase-file")
    asked: str = typer.prompt("passphrase", hide_input=True, confirmation_prompt=confirm, err=True)
    return asked


def _show(document: dict[str, Any], *, as_json: bool) -> None:  # Any: a JSON document
    show_facts(document, "Key", as_json=as_json)
    say_unvouched(document.get("unvouched_adoptions", []))
