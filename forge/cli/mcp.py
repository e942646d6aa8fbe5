"""MCP: tools for coding agents, over standard input and output."""

import typer

from forge.cli.options import Home

app = typer.Typer(help="Tools for coding agents.", rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def mcp(context: typer.Context, home: Home = None) -> None:
    """Serve tools to a coding agent, which starts this command itself and talks to it by its input and output.

    It writes as agent:mcp, or as the holder of the token in FORGE_TOKEN. It runs no phase: forge work does.

    Example: forge mcp --home ~/kernels
    """
    if context.invoked_subcommand is not None:
        return
    from forge.app.desk.desk import Desk
    from forge.app.home import find_home
    from forge.app.tokens import caller_of_environment
    from forge.errors import EnvironmentUnfit

    try:
        from forge.mcp.sdk import serve_stdio
    except ImportError as error:
        raise EnvironmentUnfit(
            f"{error}: expected the packages that the tools need", hint="pip install 'tensorpath-forge[mcp]'"
        ) from error
    desk = Desk(find_home(home))
    caller = desk.read(lambda view: caller_of_environment(view.workspace)).result()
    serve_stdio(desk, caller)
