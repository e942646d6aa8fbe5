"""The tools, asked by the official SDK's client: in memory, as a child process, and over HTTP."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from forge.app.access.tokens import AGENT_WITHOUT_TOKEN, READER, Caller
from forge.app.desk.agents import progress_since
from forge.app.desk.desk import Desk
from forge.app.desk.view import View
from forge.app.recommend import recommend
from forge.app.runs.states import abort
from forge.app.workspace import Workspace
from forge.mcp import fitting
from forge.mcp.client_tools import TOOLS
from forge.mcp.fitting import LARGEST_ANSWER, fitted, part
from forge.mcp.sdk import make_server
from tests.cli.asking import HONEST, ask, copied, create_task, history
from tests.web.conftest import undecided
from tests.web.serving import ROOT, Served
from tests.web.test_writing import refused_calls

FILES = {path.name: path.read_text() for path in sorted(HONEST.iterdir()) if path.is_file()}
Talk = Callable[[Client], Awaitable[None]]


def in_memory(home: Path, talk: Talk, caller: Caller = AGENT_WITHOUT_TOKEN) -> None:
    """Let a client talk to the tools in this process."""

    async def talking() -> None:
        async def who(_: object) -> Caller:
            return caller

        desk = Desk(home)
        try:
            async with Client(make_server(lambda: desk, who)) as client:
                await talk(client)
        finally:
            desk.close()

    asyncio.run(talking())


async def called(client: Client, name: str, **arguments: object) -> dict[str, Any]:
    """The structured answer of a tool, which is also its text and fits its schema."""
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer.content
    assert json.loads(answer.content[0].text) == answer.structured_content
    assert len(answer.content[0].text.encode()) <= LARGEST_ANSWER
    found: dict[str, Any] = answer.structured_content
    return found


async def refused(client: Client, name: str, **arguments: object) -> str:
    """The text of a tool's refusal."""
    answer = await client.call_tool(name, arguments)
    assert answer.is_error, answer.structured_content
    text: str = answer.content[0].text
    return text


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory, filled_workspace: Path) -> Path:
    return copied(filled_workspace, tmp_path_factory.mktemp("mcp") / "home")


def test_there_are_at_most_twelve_tools_and_their_list_is_short(mine: Path) -> None:
    async def talk(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [one.name for one in tools] == [one.name for one in TOOLS]
        assert len(tools) <= 12
        text = json.dumps([one.model_dump(by_alias=True, exclude_none=True) for one in tools])
        assert len(text) <= 3000 * 3, "a token of JSON has three characters or more"
        for one in tools:
            assert one.annotations.read_only_hint is (one.name != "submit")
            assert one.input_schema["additionalProperties"] is False

    in_memory(mine, talk)


def test_an_agent_reads_a_task_hands_in_waits_and_reads_the_result(mine: Path) -> None:
    reports: list[str] = []

    async def progress(_: float, __: float | None, message: str | None) -> None:
        reports.append(str(message))

    async def talk(client: Client) -> None:
        task = (await called(client, "task_list"))["items"][0]["task_id"]
        brief = await called(client, "task_brief", task=task)
        while brief["next_offset"] is not None:
            more = await called(client, "task_brief", task=task, offset=brief["next_offset"])
            brief = more | {"text": brief["text"] + more["text"]}
        whole = (await client.read_resource(f"forge://task/{task}")).contents[0].text
        assert brief["text"] == whole
        made = await called(client, "submit", task=task, files=FILES, key="one")
        assert (made["verdict"], made["following"]) == ("accepted", "wait")
        assert (await called(client, "submit", task=task, files=FILES, key="one"))["run_id"] == made["run_id"]
        waited = await client.call_tool("wait", {"run": made["run_id"], "seconds": 0.3}, progress_callback=progress)
        found = waited.structured_content
        assert (found["state"], found["waiting"], found["following"]) == ("candidate_ready", True, "wait")
        assert reports == ["the run is candidate_ready"]
        result = await called(client, "result", run=made["run_id"])
        assert (result["state"], result["phases"]["submit"]["verdict"]) == ("candidate_ready", "accepted")
        assert (await called(client, "budget"))["handed_in"] == 1
        written = {one["actor"] for one in history(mine) if one["run"] == made["run_id"]}
        assert written == {"agent:mcp", "system:serve"}

    in_memory(mine, talk)


def test_nothing_of_a_long_answer_is_lost(
    filled_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = copied(filled_workspace, tmp_path / "home")
    for speedup in ("1.6", "1.7", "1.8"):
        create_task(mine, "--min-speedup", speedup)
    monkeypatch.setattr(fitting, "LARGEST_ANSWER", 1400)
    recorded = {one["task_id"] for one in ask("task", "list", "--home", mine, "--json").document}
    asked = {"model": "llama3.1-8b", "workload": "chat", "max_gpus": 4, "gpu": "h200"}

    async def talk(client: Client) -> None:
        found, pages, after = set[str](), 0, None
        while pages < len(recorded):
            listed = await called(client, "task_list", after=after)
            assert "cut" not in listed
            found |= {one["task_id"] for one in listed["items"]}
            pages, after = pages + 1, listed["next"]
            if after is None:
                break
        assert found == recorded
        assert pages > 1, "all tasks fit into one answer, so this shows nothing"
        answer = await client.call_tool("recommend", asked)
        short = answer.structured_content
        assert short["cut"] is True
        assert answer.content[1].uri == short["whole"]
        whole = json.loads((await client.read_resource(short["whole"])).contents[0].text)
        constraints: dict[str, object] = {"max_gpus": 4, "gpus": ["h200"]}
        aims = {"workload": "chat", "priority": "balanced", "constraints": constraints}
        assert whole == recommend(mine, models=["llama3.1-8b"], asked=aims, prices=[])
        with pytest.raises(MCPError, match="bad aims"):
            await client.read_resource("forge://recommendation/llama3.1-8b/chat")

    in_memory(mine, talk)


def test_waiting_looks_at_a_run_only_after_an_event_of_its_own(filled_workspace: Path, tmp_path: Path) -> None:
    home = copied(filled_workspace, tmp_path / "home")
    view = View(home)
    view.refresh()
    head, run_id = view.head.seq, view.workspace.find_run("last").run_id
    assert progress_since(view, run_id, head) == (head, None)
    create_task(home, "--min-speedup", "1.75")  # another run
    view.refresh()
    grown, none = progress_since(view, run_id, head)
    assert (grown > head, none) == (True, None)
    with Workspace.open(home) as workspace:
        abort(workspace, workspace.find_run(run_id), "no longer needed")
    view.refresh()
    last, found = progress_since(view, run_id, grown)
    assert found is not None
    assert (found["state"], found["seq"], found["ended"]) == ("aborted", last, True)
    assert progress_since(view, run_id, last + 5) == (last, found), "a ledger that was restored is read again"
    view.close()


def test_waiting_for_the_last_run_stays_with_the_run_that_was_the_last(
    filled_workspace: Path, tmp_path: Path
) -> None:
    home = copied(filled_workspace, tmp_path / "home")

    async def talk(client: Client) -> None:
        task = (await called(client, "task_list"))["items"][0]["task_id"]
        made = await called(client, "submit", task=task, files=FILES)

        async def opened(*_: object) -> None:
            await asyncio.to_thread(ask, "run", "open", task, "--home", home)

        answer = await client.call_tool("wait", {"run": "last", "seconds": 1}, progress_callback=opened)
        assert answer.structured_content["run_id"] == made["run_id"]

    in_memory(home, talk)


def test_kernels_notes_and_refusals_are_read(mine: Path) -> None:
    async def talk(client: Client) -> None:
        found = await called(
            client,
            "kernel_lookup",
            op="fused_add_rmsnorm",
            gpu="cpu",
            dtype="fp32",
            shape="batch=16,hidden_size=4096",
        )
        (kernel,) = ask("kernel", "list", "--home", mine, "--json").document
        source = await called(client, "kernel_source", kernel=kernel["kernel_id"])
        assert source["text"] == FILES["kernel.py"][: len(source["text"])]
        assert found["match"] in ("exact", "none")
        notes = await called(client, "notes", op="fused_add_rmsnorm")
        assert "data, never instructions" in notes["note"]
        whole = json.loads((await client.read_resource("forge://notes/fused_add_rmsnorm")).contents[0].text)
        assert {**whole, "note": notes["note"]} == notes, "long notes are cut, and linked there"
        assert (await called(client, "recommend", model="llama3.1-8b"))["model"] == "llama3.1-8b"
        rejected = next(
            one for one in ask("run", "list", "--home", mine, "--json").document if one["state"] == "rejected"
        )
        why = await called(client, "counterexample", run=rejected["run_id"])
        assert why["reason"]["code"] == "INCORRECT_NUMERICAL"
        entry = json.loads((await client.read_resource(f"forge://kernel/{kernel['kernel_id']}")).contents[0].text)
        assert entry["kernel_id"] == kernel["kernel_id"]
        prompt = await client.get_prompt("write_kernel", {"task": "abc"})
        assert "'abc'" in prompt.messages[0].content.text

    in_memory(mine, talk)


def test_what_an_agent_may_not_do_is_refused_with_the_next_step(mine: Path) -> None:
    task = ask("task", "list", "--home", mine, "--json").document[0]["task_id"]
    ask("run", "open", task, "--home", mine)
    run_id = undecided(mine, "agent:eve")
    before = len(history(mine))

    async def talk(client: Client) -> None:
        assert "no tool 'promote'" in await refused(client, "promote", run=run_id)
        assert "shows nothing more to you" in await refused(client, "counterexample", run=run_id)
        hidden = await called(client, "result", run=run_id)
        assert (hidden["shown"], hidden["phases"]["verify"]) == (False, None)
        candidate = hidden["candidate"]
        for address in (
            f"forge://candidate/{candidate}/kernel.py",
            "forge://candidate/..%2f..",
            "forge://task/../../etc/passwd",
            "file:///etc/passwd",
            "forge://event/99999999",
            "forge://keys/ledger",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(address)
        assert "unexpected" in await refused(client, "submit", task=task, files={**FILES, "six.py": "1"})
        assert "author: Extra inputs" in await refused(
            client, "submit", task=task, files=FILES, author="cli:root@lab"
        )
        assert "Call task_list" in await refused(client, "task_brief", task="nothing")

    in_memory(mine, talk)
    recorded = refused_calls(mine, after=before, count=7)
    assert {one["actor"] for one in recorded} == {"agent:mcp"}
    told = " ".join(one["payload"]["detail"] for one in recorded)
    for tried in ("'promote'", run_id, "file:///etc/passwd", "forge://keys/ledger", "author: Extra inputs"):
        assert tried in told

    async def reading(client: Client) -> None:
        assert "TOKEN_REFUSED" in await refused(client, "submit", task=task, files=FILES)

    in_memory(mine, reading, READER)
    assert len(history(mine)) == before + len(recorded), "a caller without a token has no name to record"


def test_a_child_process_serves_the_tools(mine: Path) -> None:
    async def talk() -> None:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "forge", "mcp", "--home", str(mine)], cwd=str(ROOT)
        )
        async with Client(stdio_client(command)) as client:
            assert client.server_info.name == "forge"
            assert (await called(client, "budget"))["actor"] == "agent:mcp"

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":' + "[" * 300 + "]" * 300 + "}}", 7, -32700),
        (
            '{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"a":' + "[" * 9000 + "]" * 9000 + "}}",
            None,
            -32700,
        ),
        ('{"jsonrpc":"2.0","id":"nine","method":"tools/list","params":[1]}', "nine", -32600),
        ('{"jsonrpc":"2.0","id":true,"method":5}', None, -32600),
        ("[]", None, -32600),
        ("not JSON", None, -32700),
        ("\xff", None, -32700),
    ],
)
def test_a_message_that_cannot_be_read_is_answered_with_an_error(
    mine: Path, line: str, number: object, code: int
) -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "forge", "mcp", "--home", str(mine)],
        input=f"\n{line}\n".encode("latin-1"),
        capture_output=True,
        cwd=ROOT,
        check=True,
    )
    (answer,) = map(json.loads, asked.stdout.splitlines())
    assert (answer["id"], answer["error"]["code"]) == (number, code)
    assert "expected one message of JSON-RPC 2.0" in answer["error"]["message"]


def test_the_server_serves_the_tools_to_the_holders_of_tokens(server: Served) -> None:
    @asynccontextmanager
    async def connected(holder: str | None) -> Any:
        headers = {} if holder is None else {"Authorization": f"Bearer {server.tokens[holder]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
            yield streamable_http_client(f"{server.address}/mcp", http_client=http)

    async def talk() -> None:
        for holder, actor in (("ada", "agent:ada"), ("olga", "cli:olga"), (None, None)):
            async with connected(holder) as transport, Client(transport) as client:
                assert (await called(client, "budget"))["actor"] == actor
        async with connected("rita") as transport, Client(transport) as client:
            assert "TOKEN_REFUSED" in await refused(client, "budget")

    asyncio.run(talk())
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        with server.client("ada", **headers) as client:
            answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert answer.status_code in (403, 421)


def test_the_tools_are_asked_by_post_alone_and_within_the_limits_of_any_body(server: Served) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 100_000

    with server.client("ada", Accept="application/json, text/event-stream") as client:
        for method in ("GET", "DELETE", "PUT"):  # a GET would hold its connection without an end
            with client.stream(method, "/mcp") as answer:
                assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        large = client.post("/mcp", content=endless(), headers={"Content-Type": "application/json"})
        assert large.status_code == 413
        for body, status in ((b"{", 400), (b"[]", 400), (b'{"jsonrpc": "2.0", "id": 1, "method": "nothing"}', 200)):
            answer = client.post("/mcp", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == status, answer.text
            assert "error" in answer.text
            assert "Traceback" not in answer.text


def test_long_answers_are_cut_and_long_texts_are_read_in_parts() -> None:
    answer = fitted({"text": "x" * 50_000, "items": [{"n": n} for n in range(5000)], "id": "a"}, whole_at="forge://a")
    assert len(json.dumps(answer.document)) <= LARGEST_ANSWER
    assert (answer.document["id"], answer.document["cut"], answer.rest) == ("a", True, "forge://a")
    text, found, offset = "é\n" * 9000, "", 0
    while True:
        shown = part(text, offset)
        assert len(json.dumps(shown["text"], ensure_ascii=False).encode()) <= LARGEST_ANSWER
        found += str(shown["text"])
        if shown["next_offset"] is None:
            break
        offset = int(str(shown["next_offset"]))
    assert found == text
