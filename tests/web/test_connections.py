"""Connections: too many, heads that come too slowly, answers that nothing reads, and what isn't HTTP."""

import asyncio
import contextlib
import json
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from forge.web import connections
from forge.web.connections import TimedConnection, room_for_connections
from tests.web.serving import Served
from tests.web.test_hard import connected

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Talk = Callable[[int, asyncio.Event], Awaitable[None]]
LARGE = b"x" * 64 * 1024


@asynccontextmanager
async def listening(ended: asyncio.Event) -> AsyncIterator[int]:
    """A server in this process whose answer has no end; `ended` is set when one was given up."""

    async def app(scope: Any, _: object, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        if scope["path"] == "/short":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"ok"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        with contextlib.suppress(asyncio.CancelledError):
            for _ in range(100_000):
                await send({"type": "http.response.body", "body": LARGE, "more_body": True})
                await asyncio.sleep(0)
        ended.set()

    made = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, http=TimedConnection, lifespan="off", log_level="critical"))
    serving = asyncio.create_task(server.serve(sockets=[made]))
    try:
        yield made.getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        await serving


def talking(talk: Talk) -> None:
    async def whole() -> None:
        ended = asyncio.Event()
        async with listening(ended) as port, asyncio.timeout(120):
            await talk(port, ended)

    asyncio.run(whole())


@asynccontextmanager
async def asking(port: int, sent: bytes = b"") -> AsyncIterator[Streams]:
    """A connection on which this was sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def refusal(raw: bytes) -> tuple[int, dict[str, Any]]:
    """The status and the problem document of an answer."""
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    assert b"connection: close" in head.lower()
    found: dict[str, Any] = json.loads(body)
    return int(head.split()[1]), found


def test_a_connection_that_is_one_too_many_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimedConnection, "most", 3)

    short = b"GET /short HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def talk(port: int, _: asyncio.Event) -> None:
        async with contextlib.AsyncExitStack() as held:
            for _ in range(3):
                reader, writer = await held.enter_async_context(asking(port, short))
                await reader.readuntil(b"ok")  # the server knows it
            async with asking(port) as (reader, _):
                status, found = refusal(await reader.read())
            assert (status, found["status"], "come again" in found["detail"]) == (503, 503, True)
            writer.close()
            told = b""
            while not told.endswith(b"ok"):  # until the server has seen that one is closed
                async with asking(port, short.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")) as (reader, _):
                    with contextlib.suppress(ConnectionResetError):
                        told = await reader.read()

    talking(talk)


@pytest.mark.parametrize("sent", [b"", b"GET /short HT", b"GET /short HTTP/1.1\r\nHost: localhost\r\na: b\r\n"])
def test_a_head_that_does_not_come_ends_its_connection(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.05)

    async def talk(port: int, _: asyncio.Event) -> None:
        async with asking(port, sent) as (reader, _):
            with contextlib.suppress(ConnectionResetError):
                told = await reader.read()
                assert (refusal(told)[0] if told else None) == (408 if sent else None)

    talking(talk)


def test_a_body_that_nothing_reads_does_not_hold_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 1.0)

    async def talk(port: int, _: asyncio.Event) -> None:
        sent = b"POST /short HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
        async with asking(port, sent) as (reader, writer):
            await reader.readuntil(b"ok")
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.001)

    talking(talk)


def test_an_answer_that_nothing_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "UNREAD_S", 0.05)

    async def talk(port: int, ended: asyncio.Event) -> None:
        stuck = socket.create_connection(("127.0.0.1", port))
        stuck.sendall(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await ended.wait()
        stuck.close()

    talking(talk)


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET /short HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /short HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /short HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
        b"GET /short HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n",
        b"GET /short HTTP/1.1\r\nHost: a\r\nx: a\x00b\r\n\r\n",
        b"GET /short HTTP/1.1\r\nHost: a\r\n x: folded\r\n:\r\n\r\n",
        b"GET /sh\xc3\xb6rt HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /short HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 100_000,
    ],
)
def test_what_is_no_request_of_http_is_refused_with_a_problem_document(sent: bytes) -> None:
    async def talk(port: int, _: asyncio.Event) -> None:
        async with asking(port, sent) as (reader, _):
            with contextlib.suppress(ConnectionResetError):  # what is left of a long request is thrown away
                status, found = refusal(await reader.read())
                assert (status, found["code"]) == (400, "REQUEST_REFUSED")

    talking(talk)


def test_a_thousand_open_connections_end_no_server(server: Served) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    statuses = set()
    with contextlib.ExitStack() as held:
        for number in range(1300):
            held.enter_context(connected(server))
            if number % 100 == 99:
                with contextlib.suppress(httpx.RemoteProtocolError, httpx.ReadError):  # refused while it asks
                    statuses.add(server.get("/health").status_code)
    assert statuses <= {200, 503}
    assert 200 in statuses
    while server.get("/health").status_code == 503:
        pass
    assert server.get("/state").status_code == 200
    assert server.process.poll() is None


def test_the_limit_of_open_files_leaves_room_for_the_server_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: raised.append(limits))
    for limits, expected in (((1024, 1048576), 1200), ((1024, 1024), 824), ((-1, -1), 1200), ((50, 100), 1)):
        monkeypatch.setattr("resource.getrlimit", lambda _, found=limits: found)
        assert room_for_connections() == expected
    assert raised == [(1400, 1048576), (1024, 1024), (100, 100)]
