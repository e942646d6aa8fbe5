"""Answers what a client sends on standard input and the SDK can't read: the SDK drops it, and the client would wait.

Distrusts every line. An answer has the id of the request where the line shows one, as JSON-RPC 2.0, section 5, says.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
import mcp_types as types
import orjson
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

if TYPE_CHECKING:
    import contextvars

    from mcp.shared._stream_protocols import ReadStream, WriteStream

EXPECTED = "expected one message of JSON-RPC 2.0 on one line, as text in UTF-8, nested less than 200 deep"
"""Form that a line must have. 200 is the limit of pydantic's parser (jiter), which the SDK reads with."""


class ReadableMessages:
    """A client's messages in order; those that can't be read are answered with an error and left out."""

    def __init__(self, reading: ReadStream[SessionMessage | Exception], writing: WriteStream[SessionMessage]) -> None:
        self._reading, self._writing = reading, writing

    @property
    def last_context(self) -> contextvars.Context | None:
        """Return the context in which the last message was sent, which the SDK restores."""
        return getattr(self._reading, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message that can be read."""
        while isinstance(item := await self._reading.receive(), Exception):
            if (answer := error_for(item)) is not None:
                await self._writing.send(SessionMessage(answer))
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._reading.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def error_for(unreadable: Exception) -> types.JSONRPCError | None:
    """Return the answer to a line that the SDK couldn't read; None for an empty line."""
    found = unreadable.errors(include_url=False) if isinstance(unreadable, ValidationError) else []
    parsed = any(one["type"] != "json_invalid" for one in found)
    seen = [one["input"] for one in found]
    if not parsed:
        lines = [one for one in seen if isinstance(one, str | bytes)]
        if any(not one.strip() for one in lines):
            return None
        seen = [_parsed(one) for one in lines]
    message = next((one for one in seen if isinstance(one, dict) and "jsonrpc" in one), {})
    untrusted_id = message.get("id")
    said = found[0]["msg"] if found and not parsed else "it is no request, notification or response"
    return types.JSONRPCError(
        jsonrpc="2.0",
        id=untrusted_id if isinstance(untrusted_id, str | int) and not isinstance(untrusted_id, bool) else None,
        error=types.ErrorData(
            code=types.INVALID_REQUEST if parsed else types.PARSE_ERROR,
            message=f"a message that can't be read: {said}; {EXPECTED}",
        ),
    )


def _parsed(line: str | bytes) -> object:
    """Return what orjson reads, which goes deeper than the SDK; None if it can't read the line either."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
