"""Callers that flood, never read or send slowly, and processes that are killed: the others are answered, once."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest

from forge.app.access.tokens import revoke_token
from forge.app.desk import rates
from forge.app.desk.desk import Desk
from forge.app.desk.rates import MOST_CALLERS, Rate
from forge.app.workspace import Workspace
from forge.errors import RequestRefused, TokenRefused
from forge.web import guard
from tests.app.test_tokens import granted
from tests.cli.asking import HONEST, ask, copied, history, ledger_stands
from tests.sandbox.confined import running
from tests.web.serving import Served, problem, served

FILES = {path.name: path.read_text() for path in sorted(HONEST.iterdir()) if path.is_file()}


def connected(server: Served) -> socket.socket:
    host, port = server.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)))


def test_a_caller_that_floods_is_told_to_wait_and_others_are_not(server: Served) -> None:
    with server.client(Authorization="Bearer forge_flood") as client:
        answers = [client.post("/api/v1/submissions", json={}) for _ in range(50)]
    assert {one.status_code for one in answers} == {422, 429}
    late = next(one for one in answers if one.status_code == 429)
    assert problem(late)["code"] == "REQUEST_REFUSED"
    assert late.headers["retry-after"] == "1"
    assert server.get("/state").status_code == 200


@pytest.mark.parametrize("header", ["authorization", "cookie"])
def test_another_spelling_of_a_token_is_no_other_caller(header: str) -> None:
    spelt = {
        "authorization": ("Bearer forge_x", "bearer  forge_x", "BEARER forge_x "),
        "cookie": ("forge_token=forge_x", "a=1; forge_token=forge_x", "forge_token=forge_x; b=2"),
    }[header]
    assert {guard._credential({header: one}) for one in spelt} == {"forge_x"}
    assert guard._credential({"cookie": "a=1"}) == ""


def test_a_bucket_fills_with_time_and_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    at = [0.0]
    monkeypatch.setattr("forge.app.desk.rates.time.monotonic", lambda: at[0])
    rate = Rate(per_second=2, burst=3)
    assert [rate.take("a") for _ in range(4)] == [True, True, True, False]
    assert rate.take("b")
    at[0] = 0.6
    assert [rate.take("a") for _ in range(2)] == [True, False]
    for number in range(MOST_CALLERS + 5):
        rate.take(str(number))
    assert len(rate._left) == MOST_CALLERS


def test_a_body_that_comes_too_slowly_or_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_S", 0.05)

    async def never() -> dict[str, object]:
        await asyncio.sleep(10)
        return {}

    async def endless() -> dict[str, object]:
        return {"type": "http.request", "body": b"x" * 100_000, "more_body": True}

    async def read(receive: object) -> int:
        body = guard._Body(receive)  # type: ignore[arg-type]
        try:
            while True:
                await body.receive()
        except RequestRefused as refused:
            return refused.status

    assert asyncio.run(read(never)) == 408
    assert asyncio.run(read(endless)) in (408, 413)


def test_clients_that_never_read_and_idle_ones_cost_others_nothing(server: Served) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(20):
            stuck = held.enter_context(connected(server))
            stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            stuck.sendall(b"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(300):
            held.enter_context(connected(server))
        half = held.enter_context(connected(server))
        half.sendall(b"GET /api/v1/state HT")
        assert server.get("/state").status_code == 200
        assert server.get("/runs").status_code == 200
    assert server.get("/state").status_code == 200


def test_only_so_many_clients_follow_at_once_and_holders_of_tokens_find_a_place(server: Served) -> None:
    async def follow() -> list[int]:
        limits = httpx.Limits(max_connections=400)
        named = {"Authorization": f"Bearer {server.tokens['ada']}"}
        async with (
            httpx.AsyncClient(base_url=server.address, limits=limits, trust_env=False, timeout=60) as client,
            contextlib.AsyncExitStack() as held,
        ):
            asked = [{}] * (rates.MOST_OF_READERS + 2) + [named] * (rates.MOST_OF_ONE + 1)
            return [
                (await held.enter_async_context(client.stream("GET", "/api/v1/events", headers=headers))).status_code
                for headers in asked
            ]

    statuses = asyncio.run(follow())
    readers, own = statuses[: rates.MOST_OF_READERS + 2], statuses[rates.MOST_OF_READERS + 2 :]
    assert (readers.count(200), readers.count(503)) == (rates.MOST_OF_READERS, 2)
    assert (own.count(200), own[-1]) == (rates.MOST_OF_ONE, 503)


def test_a_caller_on_this_machine_has_no_other_address_than_its_own(server: Served) -> None:
    with server.client() as client:
        answers = [
            client.post("/api/v1/submissions", json={}, headers={"X-Forwarded-For": f"10.0.0.{number}"})
            for number in range(50)
        ]
    assert 429 in {one.status_code for one in answers}


def test_a_body_whose_end_is_told_twice_is_refused(server: Served) -> None:
    with connected(server) as raw:
        raw.sendall(
            b"POST /api/v1/submissions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        )
        assert b" 400 " in raw.recv(4096).partition(b"\r\n")[0]


def test_a_token_that_is_revoked_while_its_request_comes_in_changes_nothing(
    filled_workspace: Path, tmp_path: Path
) -> None:
    home = copied(filled_workspace, tmp_path / "home")
    token = granted(home)["token"]
    task = ask("task", "list", "--home", home, "--json").document[-1]["task_id"]
    body = json.dumps({"task": task, "files": FILES}).encode()
    head = (
        f"POST /api/v1/submissions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with served(home, {}, "--work", "0") as server, connected(server) as raw:
        raw.sendall(head.encode() + body[:100])
        assert ask("token", "revoke", "ada", "--home", home).status == 0
        before = len(history(home))
        raw.sendall(body[100:])
        assert b" 401 " in raw.makefile("rb").readline()
    assert len(history(home)) == before


def test_a_token_that_is_revoked_while_other_changes_are_made_changes_nothing(empty: Path) -> None:
    token = granted(empty)["token"]
    desk = Desk(empty)
    caller = desk.read(lambda view: view.caller(token)).result()
    begun, held = threading.Event(), threading.Event()
    first = desk.write(caller, lambda _: begun.set() or held.wait(60))
    assert begun.wait(60), "its token was checked before"
    second = desk.write(caller, lambda _: 1)
    with Workspace.open(empty) as workspace:
        revoke_token(workspace, "ada")
    held.set()
    assert first.result() is True
    assert isinstance(second.exception(), TokenRefused)
    desk.close()


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def workers_of(pid: int) -> list[int]:
    """Return the children of a server that were started as workers."""
    return [one for one in children(pid) if b"forge\0work" in Path(f"/proc/{one}/cmdline").read_bytes()]


def test_workers_end_with_the_server_even_if_it_is_killed(filled_workspace: Path, tmp_path: Path) -> None:
    home = copied(filled_workspace, tmp_path / "home")
    with served(home, {}, "--work", "1") as server:
        workers = list[int]()
        until = time.monotonic() + 60
        while not workers and time.monotonic() < until:  # the server answers before its worker is started
            workers = workers_of(server.process.pid)
            time.sleep(0.02)
        assert len(workers) == 1
        server.process.kill()
        server.process.wait()
        until = time.monotonic() + 60
        while any(map(running, workers)) and time.monotonic() < until:
            time.sleep(0.02)
        assert not any(map(running, workers))
    assert ledger_stands(home)


def test_a_server_that_is_killed_while_a_candidate_comes_in_takes_it_once(
    filled_workspace: Path, tmp_path: Path
) -> None:
    home = copied(filled_workspace, tmp_path / "home")
    token = {"ada": granted(home)["token"]}
    task = ask("task", "list", "--home", home, "--json").document[-1]["task_id"]
    document = {"task": task, "files": FILES, "until": "verify"}
    for delay in (0.02, 0.08):
        with served(home, token, "--work", "0") as server:
            threading.Timer(delay, os.kill, (server.process.pid, signal.SIGKILL)).start()
            with contextlib.suppress(httpx.HTTPError):
                server.post("/submissions", "ada", document, **{"Idempotency-Key": "one"})
            server.process.wait(60)
    with served(home, token, "--work", "0") as server:
        made = server.post("/submissions", "ada", document, **{"Idempotency-Key": "one"})
        assert made.status_code == 201, made.text
        assert made.json()["verdict"] == "accepted"
    own = [one for one in history(home) if one["run"] == made.json()["run_id"]]
    types = [one["type"] for one in own]
    assert [types.count(one) for one in ("RunStarted", "CandidateSubmitted", "WorkRequested")] == [1, 1, 1]
    started = [one for one in history(home) if one["type"] == "RunStarted" and one["actor"] == "system:serve"]
    assert len(started) == 1
    assert ledger_stands(home)
