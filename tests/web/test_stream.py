"""Server-sent events: each recorded event once, in order, from any place, while other processes write."""

import json
from collections.abc import Iterator

import httpx

from tests.cli.asking import ask
from tests.web.serving import Served, problem


def events(answer: httpx.Response, count: int) -> list[dict[str, object]]:
    """The first `count` events of a stream; each has its own number as its id."""
    found: list[dict[str, object]] = []
    numbered: int | None = None
    for line in answer.iter_lines():
        if line.startswith("id: "):
            numbered = int(line.removeprefix("id: "))
        if line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data: ")))
            assert found[-1]["seq"] == numbered
        if len(found) == count:
            break
    return found


def stream(server: Served, after: int | None = None, **headers: str) -> Iterator[httpx.Response]:
    client = server.client(None, **headers)
    return client.stream("GET", "/api/v1/events", params={} if after is None else {"after": after})


def test_a_stream_gives_every_event_and_goes_on_where_a_client_was(server: Served) -> None:
    head = server.get("/health").json()["seq"]
    with stream(server, 0) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        seen = events(answer, head - 3)
    with stream(server, **{"Last-Event-ID": str(seen[-1]["seq"])}) as answer:
        seen += events(answer, 3)
    assert [one["seq"] for one in seen] == list(range(1, head + 1))
    listed = server.get("/ledger/events", params={"limit": 200}).json()["items"]
    assert seen[: len(listed)] == listed


def test_new_events_reach_every_client_once(server: Served) -> None:
    task = server.get("/tasks?limit=1").json()["items"][0]["task_id"]
    head = server.get("/health").json()["seq"]
    with stream(server) as first, stream(server, head) as second:
        assert next(first.iter_raw()) == b": heartbeat\n\n"
        ask("run", "open", task, "--home", server.home)
        ask("run", "open", task, "--home", server.home)
        grown = server.get("/health").json()["seq"]
        expected = list(range(head + 1, grown + 1))
        assert [one["seq"] for one in events(second, len(expected))] == expected


def test_a_place_beyond_the_head_and_a_bad_one_are_refused(server: Served) -> None:
    assert "the ledger's head" in problem(server.get("/events?after=99999999"))["detail"]
    assert problem(server.get("/events?after=-1"))["status"] == 422
    assert problem(server.get("/events", headers={"Last-Event-ID": "x"}))["status"] == 400
