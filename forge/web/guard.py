"""Stands before every page and the API: refuses foreign hosts and origins, too much and too slow input.

Nothing behind it sees a request that it refuses. Every answer gets the headers that keep a browser from running or
loading anything that isn't of this server.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forge.app.desk.rates import Rate
from forge.errors import RequestRefused
from forge.web.pages.signing_in import COOKIE
from forge.web.problems import of_error

LONGEST_PATH, LONGEST_QUERY = 1024, 4096
"""Largest length of a path and of a query, in bytes."""
MOST_HEADERS, LARGEST_HEADERS = 64, 16 * 1024
"""Largest number of headers of a request, and their largest size together, in bytes."""
LARGEST_BODY = 5 * 256 * 1024 * 2
"""Largest body in bytes: five files of 256 KiB, twice, since JSON may write a character in several."""
BODY_S = 20.0
"""Longest time that a body may take to arrive, in seconds. Chosen; a slow caller holds one of the connections
meanwhile."""
MOST_IN_FLIGHT = 48
"""Largest number of requests of one caller that are answered at once; those of callers without a token count together
for each address. Chosen: a page takes six requests, so it is a few pages of a few tabs. Long answers are counted by
what gives them."""
MOST_OF_AN_ADDRESS = 4 * MOST_IN_FLIGHT
"""Largest number of requests of one address that are answered at once, over all tokens. A client could
else invent tokens: each counts as a caller until it is looked up. Chosen; people and programs share an address."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
REPEATED = frozenset({"type", "model", "price"})
"""Names in a query that may be given more than once."""
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of a page: nothing from elsewhere, and no script or style in the page itself."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Headers of every answer."""
HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:@]+))(?::[0-9]{0,5})?", re.ASCII)
"""Form of a Host header: an IPv6 address in brackets or another name, and perhaps a port (RFC 9110, section 7.2)."""
TOOLS_PATH = "/mcp"
"""Path at which tools are called."""
LONG_PATHS = frozenset({TOOLS_PATH, "/api/v1/events"})
"""Paths of long answers: calls of tools, which may wait for a run, and the stream of events."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names by which this machine reaches itself."""


@dataclass
class Guard:
    """Refuses what no part of the server should see. `hosts` are the names by which this server may be asked for."""

    app: ASGIApp
    hosts: frozenset[str] = LOOPBACK
    reads: Rate = field(default_factory=lambda: Rate(per_second=2000, burst=4000))
    writes: Rate = field(default_factory=lambda: Rate(per_second=2, burst=30))
    in_flight: Counter[str] = field(default_factory=Counter)
    """Caller, or address of callers -> number of their requests that are being answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        guarded = _with_headers(send)
        try:
            headers = _named(scope)
            _require_size(scope, headers)
            self._require_host(headers)
            if scope["method"] not in SAFE:
                self._require_origin(headers)
            address = (scope.get("client") or ("",))[0]
            token = _credential(headers)
            caller = f"token {token}" if token else f"address {address}"
            self._require_rate(scope, caller)
            is_long = scope["path"] in LONG_PATHS
            if not is_long:
                self._require_room(caller, f"all of {address}")
        except RequestRefused as error:
            await of_error(error)(scope, receive, guarded)
            return
        with nullcontext() if is_long else self._counted(caller, f"all of {address}"):
            await _answer(self.app, scope, _Body(receive).receive, guarded)

    def _require_host(self, headers: dict[str, str]) -> None:
        """Raise RequestRefused for a host that isn't this server: a page elsewhere may have its name point here."""
        if _host_name(headers.get("host", "")) not in self.hosts:
            raise RequestRefused(
                f"host {headers.get('host', '')[:100]!r}: expected one of {', '.join(sorted(self.hosts))}", status=421
            )

    def _require_origin(self, headers: dict[str, str]) -> None:
        """Raise RequestRefused for a change that a page of another origin asks for."""
        origin = headers.get("origin")
        is_foreign = origin is not None and urlsplit(origin).netloc != headers.get("host")
        if is_foreign or headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise RequestRefused(
                f"origin {str(origin)[:100]!r}: expected a page of this server, or a program without one", status=403
            )

    def _require_rate(self, scope: Scope, caller: str) -> None:
        is_tool = scope["path"] == TOOLS_PATH  # a call of a tool is a POST, also if it only reads
        rate = self.reads if scope["method"] in SAFE or is_tool else self.writes
        if not rate.take(caller):
            raise RequestRefused(f"too many requests: expected at most {rate.per_second:g} a second", status=429)

    def _require_room(self, caller: str, together: str) -> None:
        for asking, most in ((caller, MOST_IN_FLIGHT), (together, MOST_OF_AN_ADDRESS)):
            if self.in_flight[asking] >= most:
                raise RequestRefused(
                    f"{most} requests of yours are being answered: expected fewer before another", status=429
                )

    @contextmanager
    def _counted(self, *callers: str) -> Iterator[None]:
        """Count a request of each until the block ends."""
        self.in_flight.update(callers)
        try:
            yield
        finally:
            self.in_flight.subtract(callers)
            for one in callers:
                if not self.in_flight[one]:
                    del self.in_flight[one]


async def _answer(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request. The server cancels it when it ends: then say so, or end the answer that has begun."""
    has_begun = False

    async def sending(message: Message) -> None:
        nonlocal has_begun
        has_begun = True
        await send(message)

    try:
        await app(scope, receive, sending)
    except asyncio.CancelledError:
        if has_begun:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await of_error(RequestRefused("the server ends: expected a later call", status=503))(scope, receive, send)


class _Body:
    """Passes a request's body on, within a size and a time. What it raises, the application answers."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._size, self._whole = 0, False
        self._until: float | None = None

    async def receive(self) -> Message:
        """Return the next part of the body; raise RequestRefused if it is too large or too late."""
        if self._whole:
            return await self._receive()
        now = asyncio.get_running_loop().time()
        self._until = self._until or now + BODY_S
        try:
            message = await asyncio.wait_for(self._receive(), self._until - now)
        except TimeoutError as error:
            raise RequestRefused(
                f"the body didn't arrive within {BODY_S:g} s: send it at once", status=408
            ) from error
        self._size += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._size > LARGEST_BODY:
            raise _too_large()
        return message


def _too_large() -> RequestRefused:
    return RequestRefused(f"the body is too large: expected at most {LARGEST_BODY} bytes", status=413)


def _named(scope: Scope) -> dict[str, str]:
    """Return the headers by name; raise RequestRefused for too many, or for one of these that is given twice."""
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    size = sum(len(name) + len(value) for name, value in pairs)
    if len(pairs) > MOST_HEADERS or size > LARGEST_HEADERS:
        raise RequestRefused(
            f"{len(pairs)} headers of {size} bytes: expected at most {MOST_HEADERS} of {LARGEST_HEADERS}", status=431
        )
    counts = Counter(name for name, _ in pairs)
    for name in ("host", "origin", "authorization", "content-length", "content-type", "idempotency-key"):
        if counts[name] > 1:
            raise RequestRefused(f"header {name!r} is given {counts[name]} times: expected it once", status=400)
    if counts["content-length"] and counts["transfer-encoding"]:  # a proxy may end the body elsewhere (RFC 9112, 6.1)
        raise RequestRefused("content-length and transfer-encoding are both given: expected one", status=400)
    return dict(pairs)


def _require_size(scope: Scope, headers: dict[str, str]) -> None:
    path, query = cast(bytes, scope.get("raw_path") or scope["path"].encode()), cast(bytes, scope["query_string"])
    if len(path) > LONGEST_PATH or len(query) > LONGEST_QUERY:
        raise RequestRefused(
            f"an address of {len(path)} + {len(query)} bytes: expected at most {LONGEST_PATH} + {LONGEST_QUERY}",
            status=414,
        )
    if any(byte < 0x20 or byte == 0x7F for byte in unquote_to_bytes(path) + unquote_to_bytes(query)):
        raise RequestRefused("the address has a control character: expected none", status=400)
    twice = [name for name, n in Counter(name for name, _ in _pairs(query)).items() if n > 1 and name not in REPEATED]
    if twice:
        raise RequestRefused(f"{twice[0][:100]!r} is given more than once: expected it once", status=400)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()) or int(length[:20]) > LARGEST_BODY:
        raise _too_large()


def _credential(headers: dict[str, str]) -> str:
    """Return the token that a request gives; its spelling, and what else is in the headers, make no other caller."""
    given = headers.get("authorization")
    if given is not None:
        return given.strip().partition(" ")[2].strip()
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")


def _pairs(query: bytes) -> list[tuple[str, str]]:
    return parse_qsl(query.decode("latin-1"), keep_blank_values=True)


def _host_name(host: str) -> str:
    """Return the name in a Host header, without its port and brackets; "" for one of another form."""
    found = HOST.fullmatch(host)
    return "" if found is None else (found["address"] or found["name"]).lower()


def _with_headers(send: Send) -> Send:
    """Return `send` with the headers of every answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-cache")
        await send(message)

    return sending
