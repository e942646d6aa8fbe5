"""MCP: tools for coding agents, over standard input and output."""

from pathlib import Path
from typing import Annotated

import typer

from forge.cli.confirming import Yes, require_yes
from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_text, say

app = typer.Typer(help="Tools for coding agents.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def mcp(context: typer.Context, home: Home = None) -> None:
    """Serve tools to a coding agent, which starts this command itself and talks to it by its input and output.

    It writes as agent:mcp, or as the holder of the token in FORGE_TOKEN. It runs no phase: forge work does.

    Example: forge mcp --home ~/kernels
    """
    if context.invoked_subcommand is not None:
        return
    from forge.app.desk.agent_desk import LateDesk
    from forge.app.user.home import find_home
    from forge.errors import EnvironmentUnfit

    try:
        from forge.mcp.sdk import serve_stdio
    except ImportError as error:
        raise EnvironmentUnfit(
            f"{error}: expected the packages that the tools need", hint="pip install 'tensorpath-forge[mcp]'"
        ) from error
    late = LateDesk(find_home(home))
    try:
        serve_stdio(late.desk, late.caller)
    finally:
        late.close()


@app.command()
def install(
    client: Annotated[str, typer.Option(help="claude, codex, cursor, vscode or opencode.")],
    project: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the project that the agent works in.")
    ] = Path(),
    only_print: Annotated[
        bool, typer.Option("--print", help="Print what would be written, and write nothing.")
    ] = False,
    yes: Yes = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Set a coding agent up in a project: the entry that starts forge mcp, and the skill. Show the difference first.

    Another program's entry is never replaced.

    Example: forge mcp install --client claude --print
    """
    from forge.app import agent_clients
    from forge.app.user.home import find_home

    changes = agent_clients.planned(client, project, find_home(home))
    if not as_json:
        for one in changes:
            emit_text(one.difference)
    if changes and not only_print:
        require_yes(f"Write these {len(changes)} files?", yes=yes)
        agent_clients.write(changes)
    if as_json:
        listed = [{"path": str(one.path), "difference": one.difference} for one in changes]
        emit_json({"client": client, "written": not only_print, "changes": listed})
    elif not changes:
        say("nothing to change: it is set up already")
    elif not only_print:
        say(f"wrote {len(changes)} files; start {client} anew in {project}")
