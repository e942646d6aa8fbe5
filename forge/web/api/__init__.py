"""The HTTP API under `/api/v1`: every answer is a document of `forge.app.desk`."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel

from forge.errors import RequestRefused
from forge.web.problems import PROBLEM_TYPE
from forge.web.schemas import ProblemForm

PREFIX = "/api/v1"
Id = Annotated[str, Path(min_length=1, max_length=200)]
Responses = dict[int | str, dict[str, Any]]  # Any: parts of an OpenAPI document
USUAL_ERRORS = (400, 401, 403, 404, 408, 409, 413, 414, 415, 421, 422, 429, 431, 503)
"""HTTP statuses that any address of the API may answer with, each with a problem document."""


def answers(model: type[BaseModel], *, status: int = 200) -> Responses:
    """Return the documented answers of an address: its document, 304, and problems."""
    return {status: {"model": model, "description": (model.__doc__ or "").partition("\n")[0]}, **problems()}


def plain() -> Responses:
    """Return the documented answers of an address that answers with text."""
    return {
        200: {"description": "The text.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(),
    }


def problems() -> Responses:
    """Return the documented errors."""
    found: Responses = {304: {"description": "Nothing has changed since the answer with this ETag."}}
    document = {PROBLEM_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemForm.__name__}"}}}
    return found | {status: {"description": "Refused.", "content": document} for status in USUAL_ERRORS}


async def require_known_query(request: Request) -> None:
    """Raise RequestRefused for a query at an address that takes none; the others check their fields."""
    route = request.scope.get("route")
    if request.query_params and not getattr(getattr(route, "dependant", None), "query_params", None):
        name = next(iter(request.query_params))[:100]
        raise RequestRefused(f"{name!r}: this address takes no query; leave it out", status=422)


def router() -> APIRouter:
    """Return a new part of the API."""
    return APIRouter(prefix=PREFIX, dependencies=[Depends(require_known_query)])
