"""What one caller may use up, and when its rights end: asked of the parts of the server, without a process of it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from forge.app.access.tokens import READER, Caller, revoke_token, token_in_header
from forge.app.desk import desk as desks
from forge.app.desk.desk import Desk
from forge.app.desk.refused_calls import MOST_OF_A_CALLER, MOST_OF_ALL, RefusedCalls
from forge.app.user.home import LEDGER_FILE
from forge.app.workspace import Workspace
from forge.errors import NotFound, RequestRefused, TokenRefused, WorkspaceNotFound
from forge.web import guard
from forge.web.stream import HEARTBEAT, Stream
from tests.app.test_tokens import granted

ADA, EVE = Caller("author", "ada"), Caller("author", "eve")


@pytest.fixture
def desk(empty: Path) -> Iterator[Desk]:
    found = Desk(empty)
    yield found
    found.close()


def test_changes_are_counted_by_their_actor_however_they_come(desk: Desk) -> None:
    made = [desk.write(ADA, lambda _: 1) for _ in range(int(desks.BURST_OF_WRITES) + 20)]
    refused = [one.exception() for one in made if one.exception() is not None]
    assert refused
    assert all(isinstance(one, RequestRefused) and one.status == 429 for one in refused)
    assert desk.write(EVE, lambda _: 2).result() == 2
    assert isinstance(desk.write(READER, lambda _: 1).exception(), TokenRefused)


def test_one_caller_can_not_use_up_the_refused_calls_of_others() -> None:
    calls = RefusedCalls()
    kept = [calls.take(ADA, NotFound(f"no run {n}")) for n in range(MOST_OF_A_CALLER + 5)]
    assert sum(one is not None for one in kept) == MOST_OF_A_CALLER
    assert calls.take(EVE, NotFound("no run 1")) is not None
    assert calls.take(READER, NotFound("no run 1")) is None
    many = [
        calls.take(Caller("author", f"a{who}"), NotFound(f"no run {n}"))
        for who in range(MOST_OF_ALL // MOST_OF_A_CALLER + 2)
        for n in range(MOST_OF_A_CALLER)
    ]
    assert sum(one is not None for one in many) == MOST_OF_ALL - MOST_OF_A_CALLER - 1


@pytest.mark.parametrize("header", ["Basic forge_x", "forge_x", "Token forge_x", "Bearerforge_x"])
def test_a_token_is_taken_from_the_bearer_scheme_alone(header: str) -> None:
    assert token_in_header("bearer  forge_x ") == "forge_x"
    assert token_in_header(None) is None
    with pytest.raises(TokenRefused):
        token_in_header(header)


@pytest.mark.parametrize(
    "host", ["[::1]junk", "[::1", "::1]", "[[::1]]", "localhost:80:90", "localhost:x", "[::1]:", "[::1]@evil:80"]
)
def test_a_host_that_only_begins_as_a_known_one_is_another(host: str) -> None:
    assert guard._host_name("[::1]:8791") == "::1"
    assert guard._host_name("LocalHost:8791") == "localhost"
    known = guard._host_name(host) in guard.LOOPBACK
    assert known is (host == "[::1]:")  # a port may be empty (RFC 3986, section 3.2.3)


def test_a_stream_ends_when_its_token_is_revoked(desk: Desk, empty: Path) -> None:
    token = str(granted(empty, "ada")["token"])

    async def following() -> None:
        told: AsyncIterator[bytes] = await Stream(desk).follow(0, token)
        assert await anext(told) == HEARTBEAT
        assert (await anext(told)).startswith(b"id: 1\n")
        with Workspace.open(empty) as workspace:
            revoke_token(workspace, "ada")
        async with asyncio.timeout(60):
            rest = [one async for one in told]
        assert not any(b'"TokenRevoked"' in one for one in rest)

    asyncio.run(following())


def test_an_error_names_no_folder_of_this_machine(empty: Path) -> None:
    (empty / LEDGER_FILE).unlink()
    for named, told in ((False, "'WORKSPACE'"), (True, str(empty))):
        desk = Desk(empty, names_paths=named)
        error = desk.read(lambda view: view.head).exception()
        desk.close()
        assert isinstance(error, WorkspaceNotFound)
        assert told in error.message
        assert (str(empty) in f"{error.message} {error.hint} {error}") is named
