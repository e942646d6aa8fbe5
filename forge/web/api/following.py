"""The address that streams events as they are recorded."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response, StreamingResponse

from forge.errors import UsageError
from forge.web import asked as questions
from forge.web.answering import token_of
from forge.web.api import problems, router
from forge.web.stream import Stream

part = router()
KIND = "text/event-stream"
LONGEST_ID = 12
"""Largest length of an event's number, in digits. With an event each millisecond a ledger would need 31 years for a
longer number."""


@part.get(
    "/events",
    responses={200: {"description": "Events as they are recorded.", "content": {KIND: {}}}, **problems()},
    tags=["ledger"],
)
async def follow(request: Request, asked: Annotated[questions.StreamQuery, Query()]) -> Response:
    """Stream events as server-sent events, each with its sequence number as `id`.

    `Last-Event-ID`, which browsers send when they connect again, goes before `after`. Without either the stream
    begins at the head.
    """
    stream = request.app.state.stream
    assert isinstance(stream, Stream)
    told = await stream.follow(_last_id(request.headers.get("last-event-id"), asked.after), token_of(request))
    return StreamingResponse(told, media_type=KIND, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


def _last_id(untrusted: str | None, after: int | None) -> int | None:
    if untrusted is None:
        return after
    if not (untrusted.isascii() and untrusted.isdecimal() and len(untrusted) <= LONGEST_ID):
        raise UsageError(f"bad Last-Event-ID {untrusted[:40]!r}: expected an event's number")
    return int(untrusted)
