"""Reads the body of a request: JSON without doubtful parts, or the five files of a form."""

import json
from collections import Counter
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.requests import Request

from forge.app.desk.limits import FILE_LIMIT_BYTES
from forge.errors import RequestRefused, UsageError

Form = TypeVar("Form", bound=BaseModel)
MOST_FILES = 5
"""Number of files of a candidate. It is the number of `REQUIRED_FILES`."""
MOST_FIELDS = 8
"""Largest number of fields in a form besides its files. Chosen; the limit bounds what is parsed."""
SHOWN_MISTAKES = 5
"""Number of mistakes in a body that one answer lists. Chosen; more make an answer long, and often have one cause."""


async def parsed(request: Request, form: type[Form]) -> Form:
    """Return the JSON body of a request in its form; raise RequestRefused or UsageError."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestRefused(f"content type {kind[:100]!r}: expected application/json", status=415)
    return of_form(_document(await request.body()), form)


def of_form(untrusted: object, form: type[Form]) -> Form:
    """Return a document in its form; raise RequestRefused that names what doesn't fit."""
    try:
        return form.model_validate(untrusted, strict=True)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}" for one in error.errors()[:SHOWN_MISTAKES]
        )
        raise RequestRefused(f"{told}: expected the fields of {form.__name__}", status=422) from error


async def sent_form(request: Request) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the fields and the files of a form, by name; raise RequestRefused for more than a candidate has.

    Raises UsageError for a name that is given twice.
    """
    fields: dict[str, str] = {}
    files: dict[str, bytes] = {}
    async with request.form(
        max_files=MOST_FILES, max_fields=MOST_FIELDS + MOST_FILES, max_part_size=FILE_LIMIT_BYTES + 1
    ) as form:
        for name, value in form.multi_items():
            if name in fields or name in files:
                raise UsageError(f"{name[:100]!r} is given more than once: expected it once")
            if isinstance(value, UploadFile):
                files[name] = await value.read(FILE_LIMIT_BYTES + 1)
            else:
                fields[name] = value
    return fields, files


def text_of(name: str, untrusted: bytes) -> str:
    """Return a file's text; raise UsageError if it is none in UTF-8."""
    try:
        return untrusted.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"file {name[:100]!r} is not UTF-8 (byte {error.start}): expected text") from error


def _document(untrusted: bytes) -> object:
    try:
        return json.loads(untrusted, object_pairs_hook=_named_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(
            f"the body isn't JSON that can be taken ({error}): expected an object", status=400
        ) from error


def _named_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0][:100]!r} is given more than once")
    return dict(pairs)


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")
