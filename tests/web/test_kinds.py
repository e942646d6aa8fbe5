"""A name of another kind where an address or a tool expects one: a clear refusal that says what the name is."""

from pathlib import Path

import pytest
from mcp import Client

from tests.cli.asking import copied
from tests.web.conftest import undecided
from tests.web.serving import Served, problem
from tests.web.test_mcp import in_memory, refused

PATHS = {
    "task": ("/tasks/{}", "/tasks/{}/brief"),
    "run": ("/runs/{}", "/runs/{}/counterexample", "/runs/{}/profiles"),
    "candidate": ("/candidates/{}", "/candidates/{}/files/kernel.py"),
    "kernel": ("/kernels/{}", "/kernels/{}/files/kernel.py", "/kernels/{}/proof"),
    "event": ("/ledger/events/{}",),
    "session": ("/sessions/{}",),
    "operation": ("/notes/{}",),
}
"""Kind -> the addresses that take one of it."""
CHANGES = {"/runs/{}/request": {"until": "verify"}, "/runs/{}/withdrawal": {"reason": "x"}}


def names(server: Served) -> dict[str, str]:
    (kernel,) = server.get("/kernels").json()["items"]
    found = {kind: kernel[f"{kind}_id"] for kind in ("task", "run", "kernel")}
    return {**found, "candidate": kernel["candidate"], "event": "5"}


@pytest.mark.parametrize("wanted", PATHS)
def test_an_address_says_of_what_kind_another_name_is(server: Served, wanted: str) -> None:
    for kind, name in names(server).items():
        for path in PATHS[wanted]:
            if kind == wanted:
                continue
            found = problem(server.get(path.format(name)))
            assert found["status"] == (422 if wanted == "event" else 404), path
            is_named = kind != "event" and wanted != "event"
            assert (f"this is the id of a {kind}" in found["detail"]) is is_named, found["detail"]


def test_what_is_said_of_a_name_of_the_right_kind_stays_as_it_is(server: Served) -> None:
    known = names(server)
    found = problem(server.get(f"/runs/{known['run']}/counterexample"))
    assert found["detail"].endswith("is promoted: expected one whose candidate was refused")


def test_a_change_of_a_name_of_another_kind_writes_nothing(server: Served) -> None:
    before = server.get("/health").json()["seq"]
    for kind, name in names(server).items():
        for path, document in CHANGES.items():
            if kind != "run":
                assert problem(server.post(path.format(name), "olga", document))["status"] == 404
        if kind != "task":
            files = dict.fromkeys(
                ("kernel.py", "reference.py", "test_correctness.py", "bench.py", "metadata.json"), "x"
            )
            assert server.post("/submissions", "olga", {"task": name, "files": files}).status_code in (400, 404)
    assert server.get("/health").json()["seq"] == before


def test_a_name_with_a_slip_is_told_the_nearest(server: Served) -> None:
    known = names(server)
    for path, name in (("/runs/{}", known["run"]), ("/tasks/{}", known["task"]), ("/kernels/{}", known["kernel"])):
        wrong = f"{name[:-1]}{'0' if name[-1] != '0' else '1'}"
        assert f"nearest: {name}" in problem(server.get(path.format(wrong)))["detail"]
        with server.client() as client:
            assert name in client.get(path.format(wrong)).text, "the page says it, too"


def test_a_candidate_that_a_caller_may_not_know_of_is_told_as_one_that_is_not_there(
    filled_workspace: Path, tmp_path: Path
) -> None:
    home = copied(filled_workspace, tmp_path / "home")
    run_id = undecided(home, "agent:eve")

    async def talk(client: Client) -> None:
        candidate = (await client.call_tool("result", {"run": run_id})).structured_content["candidate"]
        told = [await refused(client, "result", run=name) for name in (candidate, "0" * 64)]
        assert told[0].replace(candidate, "X") == told[1].replace("0" * 64, "X")
        assert "this is the id of a run" in await refused(client, "task_brief", task=run_id)

    in_memory(home, talk)
