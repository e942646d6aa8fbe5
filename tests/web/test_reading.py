"""The API's answers: those of the command line, in pages, with an ETag, and an error for each kind of bad input."""

import socket
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.events import EnvironmentCaptured, ProfileCaptured
from forge.proof.tree import included
from tests.cli.asking import ask
from tests.web.serving import ROOT, Served, problem

PAGED = ("tasks", "runs", "kernels", "ledger/events")
ANSWERED = (
    *PAGED, "health", "state", "work", "lessons", "leaderboard", "experiments", "sessions", "machines",
    "ledger/events/1", "ledger/checkpoint", "ledger/inclusion?seq=2", "ledger/consistency?old_size=3",
    "audits/fast_p", "audits/rejections?by=gate", "audits/stale", "audits/regressions", "audits/invalidated",
    "audits/replication", "audits/claims", "audits/effectiveness", "notes/fused_add_rmsnorm",
    "recommendation?model=llama3.1-8b&model=llama3.1-70b", "openapi.json", "runs/last", "runs/last-1",
    "lookup?op=fused_add_rmsnorm&gpu=cpu&dtype=fp32&shape=batch=16,hidden_size=4096",
)  # fmt: skip


@pytest.mark.parametrize("path", ANSWERED)
def test_each_address_answers_without_a_token(server: Served, path: str) -> None:
    answer = server.get(f"/{path}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert str(server.home) not in answer.text, "a path of this machine"


def test_documents_are_those_of_the_command_line(server: Served) -> None:
    (kernel,) = ask("kernel", "list", "--home", server.home, "--json").document
    name = kernel["kernel_id"]
    entry = server.get(f"/kernels/{name}").json()
    assert entry == {field: value for field, value in kernel.items() if field != "source_path"}
    listed = server.get("/kernels").json()["items"]
    assert [one["kernel_id"] for one in listed] == [name]
    run = server.get(f"/runs/{listed[0]['run_id']}").json()
    assert (run["state"], run["kernel_id"], run["phases"]["promote"]["verdict"]) == ("promoted", name, "accepted")
    source = server.get(f"/kernels/{name}/files/kernel.py")
    assert source.text == (ROOT / "examples" / "honest_cpp" / "kernel.py").read_text()
    assert source.headers["content-type"].startswith("text/plain")
    candidate = server.get(f"/candidates/{kernel['candidate']}").json()
    assert candidate["candidate"] == kernel["candidate"]
    assert server.get(f"/candidates/{kernel['candidate']}/files/bench.py").status_code == 200
    task = server.get(f"/tasks/{run['task_id']}").json()
    assert task["shape"] == kernel["shape"]
    brief = server.get(f"/tasks/{run['task_id']}/brief").json()
    assert brief["brief"] == ask("prompt", brief["run_id"], "--home", server.home).out
    refused = next(one for one in server.get("/runs").json()["items"] if one["state"] == "rejected")
    why = server.get(f"/runs/{refused['run_id']}/counterexample").json()
    assert why["reason"]["code"] == "INCORRECT_NUMERICAL"


def test_a_list_is_read_in_pages_without_loss_or_repeat(server: Served) -> None:
    for name in PAGED:
        whole = server.get(f"/{name}", params={"limit": 200}).json()
        found, after = [], None
        while True:
            page = server.get(f"/{name}", params={"limit": 2} | ({"after": after} if after else {})).json()
            found += page["items"]
            after = page["next"]
            if after is None:
                break
        assert found == whole["items"]
        assert whole["next"] is None


def test_nothing_is_sent_again_until_the_ledger_grows(server: Served) -> None:
    first = server.get("/runs")
    tag = first.headers["etag"]
    again = server.get("/runs", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    assert server.get("/runs", "ada", headers={"If-None-Match": tag}).status_code == 200, "another caller"
    assert server.get("/tasks", headers={"If-None-Match": tag}).status_code == 200, "another address"
    ask("run", "open", server.get("/tasks").json()["items"][0]["task_id"], "--home", server.home)
    later = server.get("/runs", headers={"If-None-Match": tag})
    assert later.status_code == 200
    assert len(later.json()["items"]) == len(first.json()["items"]) + 1


def test_an_event_is_proven_to_be_in_the_signed_tree(server: Served) -> None:
    checkpoint = server.get("/ledger/checkpoint").json()
    proven = server.get("/ledger/inclusion", params={"seq": 5, "size": checkpoint["size"]}).json()
    assert proven["root"] == checkpoint["root"]
    path = [bytes.fromhex(one) for one in proven["proof"]]
    event = bytes.fromhex(server.get("/ledger/events/5").json()["event_hash"])
    assert included(event, 4, checkpoint["size"], path, bytes.fromhex(checkpoint["root"]))


def test_a_proof_is_checked_by_the_independent_verifier(server: Served, tmp_path: Path) -> None:
    (kernel,) = server.get("/kernels").json()["items"]
    proof = server.get(f"/kernels/{kernel['kernel_id']}/proof")
    (tmp_path / "proof").write_text(proof.text)
    (tmp_path / "kernel.py").write_text(server.get(f"/kernels/{kernel['kernel_id']}/files/kernel.py").text)
    key = server.get("/ledger/checkpoint").json()["key"]
    checked = ask("verify-proof", tmp_path / "proof", "--key", key, "--artifact", tmp_path / "kernel.py")
    assert checked.status == 0, checked.err


def test_what_a_profiler_saw_is_read_with_its_run(server: Served) -> None:
    (kernel,) = server.get("/kernels").json()["items"]
    assert server.get(f"/runs/{kernel['run_id']}/profiles").json()["items"] == []
    with Workspace.open(server.home) as workspace:
        raw = workspace.blobs.put(b'{"operators": [{"name": "rmsnorm", "share": 0.9}], "held_out": [1]}')
        captured = next(workspace.ledger.read(types=(EnvironmentCaptured.TYPE,))).event
        assert isinstance(captured, EnvironmentCaptured)
        event = ProfileCaptured(
            run_id=kernel["run_id"],
            candidate=kernel["candidate"],
            tool="torch_profiler",
            tool_version="1",
            kind="trace",
            metrics={"share": 0.9},
            raw_sha256=raw,
            env_sha256=captured.env_sha256,
        )
        workspace.append((event,), run_id=kernel["run_id"], key="test:profile", actor="system:gate")
    (seen,) = server.get(f"/runs/{kernel['run_id']}/profiles").json()["items"]
    assert seen["seen"] == {"operators": [{"name": "rmsnorm", "share": 0.9}], "held_out": None}
    assert seen["tool"] == "torch_profiler"


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/nothing", 404, "Not Found"),
        ("/runs/nothing", 404, "no run starts with"),
        ("/tasks/nothing", 404, "unknown task"),
        ("/kernels/nothing", 404, "unknown kernel"),
        ("/kernels/nothing/files/kernel.py", 404, "unknown kernel"),
        ("/candidates/last", 404, "no candidate"),
        ("/candidates/" + "0" * 64 + "/files/..%2f..%2fkernel_registry.db", 404, ""),
        ("/runs/..%2f..%2fetc%2fpasswd", 404, ""),
        ("/runs/last%00", 400, "control character"),
        ("/tasks?limit=0", 422, "limit"),
        ("/tasks?limit=NaN", 422, "limit"),
        ("/tasks?lemit=1", 422, "lemit"),
        ("/state?x=1", 422, "takes no query"),
        ("/tasks?limit=1&limit=2", 400, "more than once"),
        ("/tasks?after=eHh4", 400, "bad cursor"),
        ("/ledger/events/999999", 404, "the ledger's head"),
        ("/ledger/events/0", 422, "seq"),
        ("/ledger/events/kernel", 422, "seq"),
        ("/ledger/inclusion?seq=9&size=999999", 400, "the ledger's head"),
        ("/ledger/consistency?old_size=9&size=3", 400, "expected 1 to 3"),
        ("/audits/sql", 404, "unknown audit"),
        ("/audits/claims?op=rmsnorm", 400, "doesn't take op"),
        ("/audits/roofline", 400, "no gpu"),
        ("/lookup?op=rmsnorm", 422, "gpu"),
        ("/recommendation?model=llama3.1-8b&max_ttft_ms=inf", 422, "max_ttft_ms"),
        ("/tasks?op=" + "x" * 5000, 414, "expected at most"),
        ("/" + "x" * 2000, 414, "expected at most"),
    ],
)
def test_bad_input_has_a_status_and_a_problem_document(server: Served, path: str, status: int, said: str) -> None:
    answer = server.get(path)
    assert answer.status_code == status, answer.text
    assert said in problem(answer)["detail"]


def test_a_cursor_of_another_ledger_is_refused(server: Served, empty: Path) -> None:
    import base64

    for text, expected in (("other:3", "none of this ledger"), (f"{_ledger_id(server)}:99999", "the ledger's head")):
        cursor = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        assert expected in problem(server.get("/runs", params={"after": cursor}))["detail"]


def _ledger_id(server: Served) -> str:
    found: str = server.get("/state").json()["ledger_id"]
    return found


def test_a_foreign_host_is_refused_whatever_is_asked(server: Served) -> None:
    for host in ("forge.example", "127.0.0.1.forge.example", "", "localhost.forge.example:80"):
        answer = server.get("/state", headers={"Host": host})
        assert answer.status_code in (400, 421), host
    assert problem(server.get("/state", headers={"Host": "evil.example"}))["code"] == "REQUEST_REFUSED"
    assert server.get("/state", headers={"Host": "localhost"}).status_code == 200


def test_a_token_that_is_not_accepted_reads_nothing(server: Served) -> None:
    assert server.get("/state", "ada").status_code == 200
    for given in (f"Bearer {server.tokens['rita']}", "Bearer forge_x", "Bearer", "Basic YTpi", server.tokens["ada"]):
        answer = server.get("/state", headers={"Authorization": given})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert problem(answer)["code"] == "TOKEN_REFUSED"
    ada = server.tokens["ada"]
    assert problem(server.get("/state", headers=[("Authorization", f"Bearer {ada}")] * 2))["status"] == 400


def test_too_many_headers_and_other_methods_are_refused(server: Served) -> None:
    many = {f"x-{number}": "1" for number in range(100)}
    assert server.get("/state", headers=many).status_code == 431
    with server.client() as client:
        for method in ("PUT", "DELETE", "PATCH"):
            assert client.request(method, "/api/v1/state").status_code == 405
    address = (server.address.rpartition("/")[2].partition(":")[0], int(server.address.rpartition(":")[2]))
    with socket.create_connection(address) as raw:
        raw.sendall(b"GET /api/v1/state HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 10_000 + b"\r\n")
        assert b" 4" in raw.recv(64), "refused by the parser"
    assert server.get("/state").status_code == 200


def test_a_port_in_use_and_another_host_without_a_token_end_with_one_error(server: Served, empty: Path) -> None:
    port = server.address.rpartition(":")[2]
    used = ask("serve", "--home", empty, "--port", port, "--work", "0")
    assert (used.status, "expected a free port" in used.error) == (2, True)
    other = ask("serve", "--home", empty, "--host", "0.0.0.0", "--work", "0")
    assert (other.status, "without a token" in other.error) == (2, True)
    missing = ask("serve", "--home", empty / "nothing", "--work", "0")
    assert missing.status == 2
