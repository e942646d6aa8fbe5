"""Claims: sentences about speed, checked against the ledger."""

from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_table, say
from forge.cli.suggest import suggest

app = typer.Typer(
    help="Claims: check sentences about speed against the ledger.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def claims() -> None:
    """Claims: check sentences about speed against the ledger."""


@app.command()
def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Markdown files: a README, a page, a pull request.")
    ],
    code: Annotated[bool, typer.Option("--code", help="Also check code blocks.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Find sentences about speed that the ledger doesn't support, and propose correct ones.

    Example: forge claims check README.md docs/performance.md
    """
    from forge.app.claims import check_files
    from forge.app.user.home import find_home

    found: dict[str, Any] = check_files(find_home(home), files, code=code)  # Any: a JSON document
    if as_json:
        emit_json(found)
    else:
        for report in found["files"]:
            _show(report)
    if not found["ok"]:
        suggest("try", "forge kernel list")
        raise typer.Exit(1)


def _show(report: dict[str, Any]) -> None:  # Any: a JSON document
    counts = f"{len(report['supported'])} supported, {len(report['set_aside'])} set aside"
    rows = [
        (one["line"], f"{one['sentence']}\n\nwrong: {_told(one['faults'])}\n\ninstead: {one['instead']}\n")
        for one in report["flagged"]
    ]
    if not rows:
        say(f"{report['file']}: nothing flagged, {counts}")
        return
    emit_table(f"{report['file']}: {len(rows)} flagged, {counts}", ("line", "sentence"), rows)


def _told(faults: list[dict[str, str]]) -> str:
    return "; ".join(f"{fault['problem']}: {fault['why']}" for fault in faults)
