"""Answers a request from the desk: who asks, whether anything changed since, and the document."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from forge.app.access.tokens import Caller, token_in_header
from forge.app.desk.desk import Desk
from forge.app.desk.view import View
from forge.app.desk.wrong_kind import explained
from forge.app.workspace import Workspace

Answered = TypeVar("Answered")
Ask = Callable[[View, Caller], object]
JSON = "application/json"
KEPT_ANSWERS = 1024
"""Number of answers that are kept until the ledger gets another event. Chosen; more answers take more memory."""
KEPT_BYTES = 32 * 2**20
"""Largest size of the answers that are kept, in bytes. Chosen: 32 KiB for each of the kept answers."""


@dataclass
class KeptAnswers:
    """Answers at one state of the ledger, by caller and address: a question is asked once until something changes."""

    _stand: str = ""
    _size: int = 0
    _found: "OrderedDict[tuple[str, ...], tuple[bytes, str]]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, stand: str, key: tuple[str, ...]) -> tuple[bytes, str] | None:
        """Return a kept answer and its media type; None if there is none at this state of the ledger."""
        with self._lock:
            if stand != self._stand:
                self._found.clear()
                self._stand, self._size = stand, 0
            return self._found.get(key)

    def put(self, stand: str, key: tuple[str, ...], body: bytes, kind: str) -> None:
        """Keep an answer of the stand, and drop the oldest ones beyond KEPT_BYTES or KEPT_ANSWERS."""
        with self._lock:
            if stand != self._stand or key in self._found:
                return
            self._found[key] = (body, kind)
            self._size += len(body)
            while self._size > KEPT_BYTES or len(self._found) > KEPT_ANSWERS:
                self._size -= len(self._found.popitem(last=False)[1][0])


@dataclass(frozen=True)
class Text:
    """An answer that isn't JSON."""

    content: str
    kind: str = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class _Found:
    """What the desk's thread found: an answer, or that the caller has it already."""

    etag: str
    body: bytes | None
    kind: str


def desk_of(request: Request) -> Desk:
    """Return the desk of the server that is asked."""
    desk = request.app.state.desk
    assert isinstance(desk, Desk)
    return desk


def kept_of(request: Request) -> KeptAnswers:
    """Return the answers that the server keeps."""
    kept = request.app.state.kept
    assert isinstance(kept, KeptAnswers)
    return kept


def token_of(request: Request) -> str | None:
    """Return the token in `Authorization: Bearer`; None without one. Raises TokenRefused for another scheme."""
    return token_in_header(request.headers.get("authorization"))


async def answered(request: Request, ask: Ask, *, slow: bool = False, timeless: bool = True) -> Response:
    """Answer a question, or say that nothing has changed since the answer that the caller has.

    `slow` questions are asked apart from the others. An answer that isn't `timeless` depends on more than the ledger,
    so it isn't kept.
    """
    desk, kept, token = desk_of(request), kept_of(request), token_of(request)
    address, known = f"{request.url.path}?{request.url.query}", request.headers.get("if-none-match")
    names = [str(one) for one in request.path_params.values()]

    def found(view: View) -> _Found:
        caller = view.caller(token)
        stand = f"{view.stand}-{desk.damage or ''}"
        etag = etag_of(stand, caller, address)
        if timeless and known is not None and etag in known:
            return _Found(etag, None, JSON)
        key = (caller.scope, caller.name, address)
        had = kept.get(stand, key) if timeless else None
        if had is not None:
            return _Found(etag, *had)
        body, kind = _rendered(explained(view, caller, names, lambda: ask(view, caller)))
        if timeless:
            kept.put(stand, key, body, kind)
        return _Found(etag, body, kind)

    answer = await asyncio.wrap_future(desk.read_slowly(found) if slow else desk.read(found))
    headers = {"ETag": answer.etag, "Vary": "Authorization, Cookie"} if timeless else {"Cache-Control": "no-store"}
    if answer.body is None:
        return Response(status_code=304, headers=headers)
    return Response(answer.body, headers=headers, media_type=answer.kind)


async def changed(
    request: Request, change: Callable[[Workspace, Caller], Mapping[str, object]], *, status: int = 200
) -> Response:
    """Make a change as the caller, and answer with what came of it."""
    desk, token = desk_of(request), token_of(request)
    caller = await asyncio.wrap_future(desk.read(lambda view: view.caller(token)))
    found = await asyncio.wrap_future(desk.write(caller, lambda workspace: change(workspace, caller)))
    return Response(orjson.dumps(found), status, headers={"Cache-Control": "no-store"}, media_type=JSON)


def etag_of(stand: str, caller: Caller, address: str) -> str:
    """Return the ETag of an answer: another one for each state of the ledger, caller and address."""
    digest = hashlib.sha256(f"{stand} {caller.scope} {caller.name} {address}".encode()).hexdigest()
    return f'"{digest[:32]}"'


def _rendered(document: object) -> tuple[bytes, str]:
    if isinstance(document, Text):
        return document.content.encode(errors="replace"), document.kind
    return orjson.dumps(document), JSON
