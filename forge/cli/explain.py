"""explain: what docs/errors.md says of a code."""

from typing import Annotated

import typer

from forge.cli.options import Json
from forge.cli.output import emit_json, emit_text


def explain(
    code: Annotated[
        str, typer.Argument(metavar="CODE", help="An error code or a reason code, for example COMPILE_ERROR.")
    ],
    as_json: Json = False,
) -> None:
    """Explain an error code or a reason code, and say what to do next.

    Example: forge explain COMPILE_ERROR
    """
    from forge.app.explanations import explanation

    found = explanation(code)
    if as_json:
        emit_json({"code": found.code, "kind": found.kind, "text": found.text})
    else:
        emit_text(f"{found.code}, {found.kind}\n\n{found.text}\n")
