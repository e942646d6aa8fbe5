"""How many requests of one caller are answered at once, and what open requests are told when the server ends."""

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from starlette.types import Receive, Scope, Send

from forge.web.guard import MOST_IN_FLIGHT, MOST_OF_AN_ADDRESS, Guard
from tests.cli.asking import copied
from tests.web.serving import ROOT

HEADERS = [(b"content-length", b"2")]


@dataclass
class Held:
    """A guard before an application that answers nothing until it is told to, and its client."""

    guard: Guard
    client: httpx.AsyncClient
    until: asyncio.Event

    def ask(self, token: str, path: str = "/") -> "asyncio.Task[httpx.Response]":
        return asyncio.create_task(self.client.get(path, headers={"Authorization": f"Bearer {token}"}))


@asynccontextmanager
async def held() -> AsyncIterator[Held]:
    until = asyncio.Event()

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await until.wait()
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": b"ok"})

    guard = Guard(app)
    transport = httpx.ASGITransport(guard)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
        yield Held(guard, client, until)
    assert not guard.in_flight, "what was answered is forgotten"


def test_one_caller_has_only_so_many_requests_in_flight() -> None:
    async def whole() -> None:
        async with held() as server:
            open_ones = [server.ask("ada") for _ in range(MOST_IN_FLIGHT)]
            while server.guard.in_flight["token ada"] < MOST_IN_FLIGHT:
                await asyncio.sleep(0)
            refused = await server.ask("ada")
            assert (refused.status_code, refused.json()["status"]) == (429, 429)
            assert "being answered" in refused.json()["detail"]
            open_ones += [server.ask("eve"), server.ask("ada", "/api/v1/events")]
            await asyncio.sleep(0.05)
            server.until.set()
            assert {one.status_code for one in await asyncio.gather(*open_ones)} == {200}
            assert (await server.ask("ada")).status_code == 200

    asyncio.run(whole())


def test_invented_tokens_of_one_address_count_together() -> None:
    async def whole() -> None:
        async with held() as server:
            open_ones = [server.ask(str(token)) for token in range(MOST_OF_AN_ADDRESS)]
            while sum(server.guard.in_flight.values()) < 2 * MOST_OF_AN_ADDRESS:
                await asyncio.sleep(0)
            assert (await server.ask("one more")).status_code == 429
            server.until.set()
            assert {one.status_code for one in await asyncio.gather(*open_ones)} == {200}

    asyncio.run(whole())


def test_a_token_spelled_like_an_address_takes_no_room_of_that_address() -> None:
    async def whole() -> None:
        async with held() as server:
            open_ones = [server.ask(name) for name in ("127.0.0.1", "address 127.0.0.1", "all of 127.0.0.1")]
            while sum(server.guard.in_flight.values()) < 2 * len(open_ones):
                await asyncio.sleep(0)
            assert server.guard.in_flight["all of 127.0.0.1"] == len(open_ones)
            assert server.guard.in_flight["address 127.0.0.1"] == 0
            server.until.set()
            await asyncio.gather(*open_ones)

    asyncio.run(whole())


def test_open_requests_are_answered_when_the_server_ends_and_leave_no_traceback(
    filled_workspace: Path, tmp_path: Path
) -> None:
    home = copied(filled_workspace, tmp_path / "home")
    command = [sys.executable, "-m", "forge", "serve", "--home", str(home), "--port", "0", "--json", "--work", "0"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"NO_COLOR": "1"},
    )
    assert process.stdout is not None
    host, port = json.loads(process.stdout.readline())["address"].removeprefix("http://").split(":")
    waiting, stream = (socket.create_connection((host, int(port)), timeout=60) for _ in range(2))
    waiting.sendall(b"POST /api/v1/submissions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n")
    waiting.sendall(b"Content-Type: application/json\r\n\r\n{")
    stream.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert stream.recv(100)
    process.send_signal(signal.SIGTERM)
    answer = http.client.HTTPResponse(waiting)
    answer.begin()
    assert (answer.status, json.loads(answer.read())["status"]) == (503, 503)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said, said
    waiting.close()
    stream.close()
