"""serve: web pages and an HTTP API over a workspace."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forge.cli.options import Home, Json
from forge.cli.output import emit_json_line, say

if TYPE_CHECKING:
    from forge.app.desk.desk import Desk

LOOPBACK_HOST = "127.0.0.1"
LOOPBACK_HOSTS = frozenset({LOOPBACK_HOST, "localhost", "::1"})
"""Names by which only this machine reaches itself."""
Host = Annotated[str, typer.Option(help="Address to listen on. If other machines reach it, make a token first.")]
PORT = 8791
"""Port that the server listens on unless another is named. Chosen; it is above 1023, so that a user without rights
may listen there."""
Port = Annotated[int, typer.Option(help="Port to listen on; 0 takes any that is free.", min=0, max=65535)]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="NAME", help="A name by which a proxy asks for this server; may be repeated."
    ),
]
Workers = Annotated[int, typer.Option("--work", help="Number of workers to start.", min=0, max=64)]
OPEN_TO_OTHERS = (
    "serve: other machines can reach this server now, read everything that is published, and write with a token. "
    "It speaks plain HTTP, so tokens can be read on the way: put a proxy with TLS before it."
)


def serve(
    host: Host = LOOPBACK_HOST,
    port: Port = PORT,
    allow_host: Names = None,
    work: Workers = 1,
    read_only: Annotated[bool, typer.Option("--read-only", help="Accept no changes, and start no worker.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Serve web pages and the HTTP API, and work off what is asked for, until interrupted.

    It prints its address. Programs submit candidates with a token; forge token add makes one.

    Example: forge serve --port 8791 --work 1
    """
    from forge.app.access.tokens import has_tokens
    from forge.app.user.home import find_home
    from forge.errors import UsageError

    folder = find_home(home)
    if host not in LOOPBACK_HOSTS and not has_tokens(folder):
        raise UsageError(
            f"host {host!r} without a token: expected a workspace with a token, since other machines could reach "
            "this server; add one first",
            hint="forge token add NAME --scope author",
        )
    names = frozenset(name.lower() for name in (host, *(allow_host or ())))
    _serve(folder, host, port, names=names, work=0 if read_only else work, read_only=read_only, as_json=as_json)


def _serve(
    folder: Path, host: str, port: int, *, names: frozenset[str], work: int, read_only: bool, as_json: bool
) -> None:
    """Answer until interrupted; `names` are further names by which the server may be asked for."""
    from forge.app.desk.desk import Desk
    from forge.errors import LedgerCorrupt

    try:
        from forge.web.app import make_app
        from forge.web.server import bound, workers
        from forge.web.server import serve as serve_app
    except ImportError as error:
        raise _not_installed(error) from error
    desk = Desk(folder, read_only=read_only)
    try:
        desk.read(lambda view: view.head).result()
    except LedgerCorrupt as error:
        desk.damage = error.message
        say(f"serve: the ledger is damaged, so pages say that and nothing may be submitted: {error.message}")
    listening = bound(host, port)
    address = f"http://{host if ':' not in host else f'[{host}]'}:{listening.getsockname()[1]}"
    if host not in LOOPBACK_HOSTS:
        say(OPEN_TO_OTHERS)
    with workers(work, folder):
        serve_app(
            make_app(desk, hosts=names, tools=_tools(desk)), listening, ready=lambda: _tell(address, as_json=as_json)
        )


def _tools(desk: "Desk") -> Any:  # Any: a function that makes an application and what runs around it
    """Return what makes the answers at /mcp; None where the package for them isn't installed."""
    if find_spec("mcp") is None:
        return None

    def make() -> Any:  # Any: as above
        from forge.mcp.sdk import http_app

        return http_app(desk)

    return make


def _tell(address: str, *, as_json: bool) -> None:
    if as_json:
        emit_json_line({"address": address})
    else:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()


def _not_installed(error: ImportError) -> Exception:
    from forge.errors import EnvironmentUnfit

    return EnvironmentUnfit(
        f"{error}: expected the packages that the server needs", hint="pip install 'tensorpath-forge[serve]'"
    )
