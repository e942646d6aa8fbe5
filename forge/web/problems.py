"""Turns errors into problem documents (RFC 9457), with Forge's error codes and hints."""

from collections.abc import Mapping

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from forge.errors import (
    ActorForbidden,
    AlreadyDecided,
    ConcurrencyConflict,
    EnvironmentUnfit,
    ForgeError,
    IdempotencyConflict,
    IntegrityError,
    NotFound,
    PhaseOutOfOrder,
    RequestRefused,
    RunNotFound,
    SessionNotFound,
    StorageFailed,
    UnknownName,
    UsageError,
    WorkspaceNotFound,
)

STATUSES: tuple[tuple[type[ForgeError], int], ...] = (
    (NotFound, 404),
    (RunNotFound, 404),
    (SessionNotFound, 404),
    (UnknownName, 404),
    (PhaseOutOfOrder, 409),
    (AlreadyDecided, 409),
    (ConcurrencyConflict, 409),
    (IdempotencyConflict, 409),
    (ActorForbidden, 403),
    (WorkspaceNotFound, 503),
    (EnvironmentUnfit, 503),
    (StorageFailed, 503),
    (IntegrityError, 503),
    (UsageError, 400),
)
"""Class of an error -> its HTTP status; the first class that fits counts. Damage of what is stored is no fault of the
server: until it is repaired, it can't answer."""
TITLES = {
    400: "Bad input",
    401: "No accepted token",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    414: "Address too long",
    415: "Another content type",
    421: "Another host",
    422: "Bad input",
    429: "Too many requests",
    431: "Headers too large",
    500: "A fault of Forge",
    503: "Not now",
}
"""HTTP status -> the title of its problem document."""
RETRY_S = 1
"""Time after which a refused caller may ask again, in whole seconds as HTTP has it: the shortest that is not zero."""
SHOWN_MISTAKES = 5
"""Number of mistakes in a request that one problem document lists. Chosen; more make an answer long, and often have
one cause."""
PROBLEM_TYPE = "application/problem+json"


def status_of(error: ForgeError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, RequestRefused):
        return error.status
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def problem(status: int, *, code: str, detail: str, hint: str | None = None) -> Response:
    """Return the response for a problem."""
    document = {
        "type": f"urn:forge:error:{code.lower()}",
        "title": TITLES.get(status, "Refused"),
        "status": status,
        "detail": detail,
        "code": code,
        "hint": hint,
    }
    headers = {"Cache-Control": "no-store"}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status in (429, 503):
        headers["Retry-After"] = str(RETRY_S)
    return Response(orjson.dumps(document), status, headers=headers, media_type=PROBLEM_TYPE)


def of_error(error: ForgeError) -> Response:
    """Return the response for an error of Forge."""
    return problem(status_of(error), code=error.code, detail=error.message, hint=error.hint)


async def on_forge_error(_: Request, error: Exception) -> Response:
    """Answer an error of Forge with its problem document."""
    assert isinstance(error, ForgeError)
    return of_error(error)


async def on_bad_request(_: Request, error: Exception) -> Response:
    """Answer a request whose fields don't have the form that the API asks for."""
    assert isinstance(error, RequestValidationError)
    return problem(422, code=UsageError.code, detail="; ".join(map(_mistake, error.errors()[:SHOWN_MISTAKES])))


async def on_http_error(_: Request, error: Exception) -> Response:
    """Answer an address that isn't there, or a method that it doesn't have."""
    assert isinstance(error, HTTPException)
    code = NotFound.code if error.status_code == 404 else RequestRefused.code
    response = problem(error.status_code, code=code, detail=str(error.detail))
    response.headers.update(error.headers or {})
    return response


async def on_fault(_: Request, error: Exception) -> Response:
    """Answer a fault of our own, without telling more of it than its kind; the log of the server has it."""
    return problem(500, code=ForgeError.code, detail=f"a fault of Forge ({type(error).__name__}): its log says more")


def _mistake(found: Mapping[str, object]) -> str:
    place = found.get("loc", ())
    assert isinstance(place, tuple | list)
    return f"{'.'.join(map(str, place[1:])) or place[0]}: {found.get('msg')}"
