"""adopt: what programs report that call promoted kernels."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from forge.adopt.tally import kernel_or_reason
from forge.app.user.user_paths import read_regular
from forge.cli.options import Json
from forge.cli.output import emit_json, emit_table
from forge.errors import UsageError

app = typer.Typer(help="Reports of programs that adopted kernels.", no_args_is_help=True, rich_markup_mode=None)
REPORT_BYTES = 64 << 20
"""Largest report, in bytes. A line has about 400, and an engine has some thousand lines."""


@app.callback()
def adopt() -> None:
    """Keep `report` a command of the noun, although it is the only one."""


@app.command()
def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A report that a program wrote.")],
    as_json: Json = False,
) -> None:
    """Show which kernel ran for each operation and shape, and why the fallback ran elsewhere.

    Example: forge adopt report report.json
    """
    document = _read(file)
    if as_json:
        emit_json(document)
        return
    columns = ("operation", "device", "shape", "calls", "took", "kernel or reason", "captured", "shadowed")
    rows = [_row(one) for one in document["lines"]]
    emit_table(f"Calls, by the registry's generation {document['generation'][:12]}", columns, rows)
    withdrawn: dict[str, str] = document["withdrawn"]
    if withdrawn:
        emit_table("Withdrawn in that process", ("kernel", "why"), list(withdrawn.items()))


def _row(line: dict[str, Any]) -> tuple[object, ...]:  # Any: a JSON document
    sizes = ",".join(f"{axis}={size}" for axis, size in line["shape"].items())
    what, device = kernel_or_reason(line), f"{line['device']} {line['dtype']}"
    return line["op"], device, sizes, line["hits"], line["backend"], what, line["captured"], line["shadowed"]


def _read(file: Path) -> dict[str, Any]:  # Any: a JSON document
    expected = "expected a JSON file that Adopted.write_report wrote"
    try:
        document: dict[str, Any] = json.loads(read_regular(file, limit_bytes=REPORT_BYTES))
        if document["kind"] != "adoption" or document["schema_version"] != 1:
            raise UsageError(
                f"{str(file)!r} is of kind {document['kind']!r:.50}, schema {document['schema_version']!r:.20}: "
                f"{expected}, of kind 'adoption', schema 1"
            )
        for one in document["lines"]:
            _row(one)
        dict(document["withdrawn"]).items()
        str(document["generation"])[:12]
    except OSError as error:
        raise UsageError(f"{str(file)!r} can't be read: {error}; {expected}") from error
    except ValueError as error:
        raise UsageError(f"{str(file)!r} is no report: {str(error)[:100]!r}; {expected}") from error
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        lacks = (
            f"it lacks the field {error}" if isinstance(error, KeyError) else "its fields aren't those of a report"
        )
        raise UsageError(f"{str(file)!r} is no report: {lacks}; {expected}") from error
    return document
