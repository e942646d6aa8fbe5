"""Tokens: what a program shows to the server to be known as an author or as an operator."""

from typing import Annotated

import typer

from forge.cli.lists import show_tokens
from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json
from forge.cli.output import emit_answer, emit_json, emit_table, say
from forge.cli.suggest import suggest

app = typer.Typer(help="Tokens: let programs ask over HTTP or MCP.", no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(help="Name of the token's holder.")]


@app.command()
def add(
    name: Name,
    scope: Annotated[
        str,
        typer.Option(
            help="author: may submit candidates. operator: may also do what you may do, except decide about kernels."
        ),
    ],
    expires: Annotated[
        str | None,
        typer.Option(help="Time until it expires, as 12h, 30d or 8w. Default: it doesn't.", show_default=False),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it, once: only its digest is kept.

    An author's events have the actor agent:NAME, an operator's cli:NAME. Another workspace refuses the token.

    Example: forge token add ada --scope author --expires 30d
    """
    from forge.app.access.tokens import grant_token

    with open_workspace(home) as workspace:
        made = grant_token(workspace, name, untrusted_scope=scope, untrusted_lifetime=expires)
    if as_json:
        emit_json(made)
    else:
        emit_table("Token", ("", ""), [(field, value) for field, value in made.items() if value is not None])
        say("keep the token now: it isn't shown again")
    suggest("next", "forge token list")


@app.command("list")
def list_tokens(home: Home = None, as_json: Json = False) -> None:
    """List every token that was granted, with its state.

    Example: forge token list
    """
    from forge.app.access.tokens import all_tokens

    with open_workspace(home) as workspace:
        tokens = all_tokens(workspace)
    show_tokens(tokens, as_json=as_json)


@app.command()
def revoke(name: Name, home: Home = None, as_json: Json = False) -> None:
    """Take a token back. The server refuses it from the next request on.

    Example: forge token revoke ada
    """
    from forge.app.access.tokens import revoke_token

    with open_workspace(home) as workspace:
        revoked = revoke_token(workspace, name)
    rows = [(revoked["name"], revoked["scope"], revoked["state"])]
    emit_answer(revoked, "Token", ("name", "scope", "state"), rows, as_json=as_json)
