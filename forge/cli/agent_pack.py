"""agent pack: what an author is told of a platform, and the numbers of a profiler's export."""

from typing import Annotated

import typer

from forge.cli import agent_options as options
from forge.cli.options import Json
from forge.cli.output import emit_json, emit_table, say


def pack(
    platform: Annotated[str, typer.Argument(metavar="PLATFORM", help="cpu, cuda, rocm or metal.")],
    profile: options.Profile = None,
    as_json: Json = False,
) -> None:
    """Show what an author is told of a platform; with --profile, read a profiler's export.

    Example: forge agent pack rocm --profile rocprof:counters.csv
    """
    from dataclasses import asdict

    from forge.app.sessions.platform_pack import judging, read_profile
    from forge.platforms.packs import find_pack

    found = find_pack(platform)
    readings = () if profile is None else read_profile(found, profile)
    if as_json:
        listed = [asdict(one) for one in readings]
        emit_json({"platform": found.name, "judges": judging(found), "text": found.text(), "readings": listed})
    elif readings:
        rows = [(one.id, f"{one.value:.6g}", one.unit) for one in readings]
        emit_table("Profile", ("counter", "value", "unit"), rows)
    else:
        typer.echo(found.text())
    say(judging(found))
