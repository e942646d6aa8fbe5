"""Writes docs/http-api.md from the API's OpenAPI document: `python docs/api.py`; with `--check` it only compares.

It needs the packages of the extra `serve`, so it isn't part of docs/generate.py.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forge.app.desk.desk import Desk
from forge.web.app import make_app

PAGE = Path(__file__).parent / "http-api.md"
NOTE = "<!-- Written by docs/api.py from the OpenAPI document. Edit forge/web/api/, then run it. -->"
INTRODUCTION = """
This page lists the addresses of the HTTP API that `forge serve` answers.
The server's own OpenAPI 3.1 document is at `/api/v1/openapi.json`, with every field.

An error is a problem document (`application/problem+json`) with one of [the error codes](errors.md) and a hint.
A list has `items`, `next` and `seq`; give `next` as `after` for the page after it.
An answer has an `ETag`; send it as `If-None-Match`, and the answer is `304` until the ledger gets another event.
A token is sent as `Authorization: Bearer TOKEN`; [what it allows](how-to/what-a-token-can-do.md) has a page.
"""
Document = dict[str, Any]


def document() -> Document:
    """The OpenAPI document; no workspace is opened for it."""
    desk = Desk(Path("/nowhere"))
    made: Document = make_app(desk).openapi()
    desk.close()
    return made


def page() -> str:
    """The page, in Markdown."""
    paths = document()["paths"]
    tags = dict.fromkeys(one["tags"][0] for methods in paths.values() for one in methods.values())
    lines = ["# HTTP API", "", NOTE, INTRODUCTION]
    for tag in tags:
        lines += [f"## {tag.capitalize()}", "", "| address | takes | answers |", "|---|---|---|"]
        lines += [
            f"| `{method.upper()} {path}` | {takes(one)} | {summary(one)} |"
            for path, methods in paths.items()
            for method, one in methods.items()
            if one["tags"][0] == tag
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def takes(one: Document) -> str:
    """The names of an address's parameters; a star marks those that are required."""
    return ", ".join(_parameters(one)) or " "


def _parameters(one: Document) -> Iterator[str]:
    for parameter in one.get("parameters", ()):
        if parameter["in"] != "path":
            yield f"`{parameter['name']}`{'*' if parameter.get('required') else ''}"
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    for name in body.get("properties", ()):
        yield f"`{name}`{'*' if name in body.get('required', ()) else ''}"


def summary(one: Document) -> str:
    """What an address does, in one line."""
    text: str = one.get("description", one["summary"])
    return text.replace("\n", " ").replace("|", "\\|")


def main() -> int:
    """Write the page, or with `--check` compare it; the exit status."""
    made = page()
    if sys.argv[1:] == ["--check"]:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
