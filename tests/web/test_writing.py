"""What callers may change over the API, and what they may not: each refusal writes nothing."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from forge.app.access.tokens import Caller
from forge.app.desk import changes, handed_in_bytes
from forge.errors import RequestRefused
from tests.cli.asking import HONEST, ask, copied, create_task, history, ledger_stands
from tests.web.conftest import undecided
from tests.web.serving import Served, problem, served

FILES = {path.name: path.read_text() for path in sorted(HONEST.iterdir()) if path.is_file()}


def newest_task(server: Served) -> str:
    found: str = server.get("/tasks?limit=1").json()["items"][0]["task_id"]
    return found


def submission(server: Served, **more: object) -> dict[str, object]:
    return {"task": newest_task(server), "files": FILES, **more}


def head(server: Served) -> int:
    found: int = server.get("/health").json()["seq"]
    return found


def test_an_author_hands_in_and_a_worker_is_asked(server: Served) -> None:
    answer = server.post("/submissions", "ada", submission(server))
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert (made["verdict"], made["state"], made["until"]) == ("accepted", "candidate_ready", "promote")
    written = {one["type"]: one["actor"] for one in history(server.home) if one["run"] == made["run_id"]}
    assert written == {
        "RunStarted": "system:serve",
        "PlanAccepted": "agent:ada",
        "PromptRendered": "agent:ada",
        "CandidateSubmitted": "agent:ada",
        "WorkRequested": "agent:ada",
        **({"ClaimRecorded": "agent:ada"} if "ClaimRecorded" in written_types(server, made["run_id"]) else {}),
    }
    (asked,) = [one for one in server.get("/work").json()["items"] if one["run_id"] == made["run_id"]]
    assert asked["requested_by"] == "agent:ada"
    gone = server.post(f"/runs/{made['run_id']}/withdrawal", "ada", {"reason": "a better one is there"})
    assert gone.json()["withdrawn"] is True
    assert problem(server.post(f"/runs/{made['run_id']}/withdrawal", "ada", {"reason": "x"}))["status"] == 409
    again = server.post(f"/runs/{made['run_id']}/request", "ada", {"until": "verify"})
    assert again.json()["until"] == "verify"
    assert ledger_stands(server.home)


def written_types(server: Served, run_id: str) -> set[str]:
    return {one["type"] for one in history(server.home) if one["run"] == run_id}


def test_an_operator_writes_as_a_person_and_a_form_hands_in_too(server: Served) -> None:
    files = {name: (name, text.encode(), "text/plain") for name, text in FILES.items()}
    with server.client("olga") as client:
        answer = client.post("/api/v1/submissions", data={"task": newest_task(server)}, files=files)
    assert answer.status_code == 201, answer.text
    assert server.get(f"/candidates/{answer.json()['candidate']}", "olga").json()["submitted_by"] == "cli:olga"
    with server.client("olga") as client:
        sixth = client.post(
            "/api/v1/submissions", data={"task": newest_task(server)}, files={**files, "more.py": ("more.py", b"1")}
        )
    assert problem(sixth)["status"] == 400


def test_a_key_makes_a_repeated_submission_the_same_run(server: Served) -> None:
    wanted = submission(server, until=None)
    key = {"Idempotency-Key": "the first try"}
    first = server.post("/submissions", "ada", wanted, **key).json()
    before = head(server)
    assert server.post("/submissions", "ada", wanted, **key).json() == first
    assert head(server) == before
    other = {**wanted, "files": FILES | {"bench.py": FILES["bench.py"] + "\n"}}
    refused = problem(server.post("/submissions", "ada", other, **key))
    assert (refused["status"], refused["code"]) == (409, "IDEMPOTENCY_CONFLICT")
    assert head(server) == before
    mine = server.post("/submissions", "eve", wanted, **key).json()
    assert mine["run_id"] != first["run_id"], "another author's key"


def test_one_author_keeps_only_so_many_bytes(
    filled_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sum(len(text.encode()) for text in FILES.values())
    monkeypatch.setattr(handed_in_bytes, "MOST_BYTES", 2 * size + 10)
    home = copied(filled_workspace, tmp_path / "home")
    task = ask("task", "list", "--home", home, "--json").document[-1]["task_id"]
    ada, eve, olga = Caller("author", "ada"), Caller("author", "eve"), Caller("operator", "olga")

    def hand_in(caller: Caller, key: str) -> dict[str, object]:
        with changes.opened(home, caller) as workspace:
            return changes.submit(workspace, caller, task=task, untrusted_files=FILES, until=None, key=key)

    made = [hand_in(ada, key) for key in ("one", "two")]
    before = len(history(home))
    with pytest.raises(RequestRefused, match=f"{2 * size} bytes") as refused:
        hand_in(ada, "three")
    assert refused.value.status == 429
    assert len(history(home)) == before
    assert hand_in(ada, "two") == made[1], "what was handed in before is answered"
    assert hand_in(eve, "one")["verdict"] == "accepted", "another author has room of its own"
    assert all(hand_in(olga, key)["verdict"] == "accepted" for key in ("a", "b", "c"))


def test_one_author_fills_the_workers_queue_only_so_far(
    filled_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_WAITING", 2)
    home = copied(filled_workspace, tmp_path / "home")
    task = ask("task", "list", "--home", home, "--json").document[-1]["task_id"]
    ada, eve, olga = Caller("author", "ada"), Caller("author", "eve"), Caller("operator", "olga")

    def hand_in(caller: Caller, key: str, **more: Any) -> dict[str, object]:
        given = {"task": task, "untrusted_files": FILES, "until": "verify", "key": key, **more}
        with changes.opened(home, caller) as workspace:
            return changes.submit(workspace, caller, **given)

    made = [hand_in(ada, key) for key in ("one", "two")]
    for until in ("verify", "promote"):
        with pytest.raises(RequestRefused, match="wait for workers") as refused:
            hand_in(ada, "three", until=until)
        assert refused.value.status == 429
    assert hand_in(ada, "two") == made[1], "what was asked before is answered"
    quiet = hand_in(ada, "quiet", until=None)
    with changes.opened(home, ada) as workspace, pytest.raises(RequestRefused, match="wait for workers"):
        changes.ask_for_work(workspace, ada, str(quiet["run_id"]), "verify")
    assert hand_in(eve, "one")["verdict"] == "accepted", "another author has room of its own"
    assert all(hand_in(olga, key)["verdict"] == "accepted" for key in ("a", "b", "c"))
    with changes.opened(home, ada) as workspace:
        changes.withdraw(workspace, ada, str(made[0]["run_id"]), "a better one is there")
    assert hand_in(ada, "three")["until"] == "verify"


def test_a_candidate_that_is_refused_at_the_door_is_an_answer(server: Served) -> None:
    bad = FILES | {"metadata.json": json.dumps({"op": "softmax", "language": "cpp"})}
    key = {"Idempotency-Key": "refused"}
    made = server.post("/submissions", "ada", submission(server, files=bad), **key)
    assert (made.status_code, made.json()["verdict"]) == (201, "rejected")
    assert made.json()["reason"]["code"] == "BAD_SUBMISSION"
    assert server.post("/submissions", "ada", submission(server, files=bad), **key).json() == made.json()
    run = server.get(f"/runs/{made.json()['run_id']}").json()
    assert (run["state"], run["sealed"]) == ("aborted", False)


def refused_calls(home: Path, *, after: int, count: int) -> list[dict[str, Any]]:
    """The calls that were recorded as refused, and nothing else was recorded after event `after`."""
    until = time.monotonic() + 60
    while len(found := [one for one in history(home) if one["seq"] > after]) < count and time.monotonic() < until:
        time.sleep(0.05)
    assert [one["type"] for one in found] == ["WorkRefused"] * count
    assert {one["payload"]["asked"] for one in found} == {"call"}
    return found


@pytest.mark.parametrize("holder", [None, "rita"])
def test_without_an_accepted_token_nothing_is_written(server: Served, holder: str | None) -> None:
    before = head(server)
    for path, document in (
        ("/submissions", submission(server)),
        ("/runs/last/request", {"until": "promote"}),
        ("/runs/last/withdrawal", {"reason": "x"}),
    ):
        answer = server.post(path, holder, document)
        assert answer.status_code == 401, path
    assert head(server) == before


def test_an_author_reaches_no_run_of_another_author(server: Served) -> None:
    create_task(server.home, "--min-speedup", "1.75")
    run_id = undecided(server.home, "agent:eve")
    candidate = server.get(f"/runs/{run_id}", "eve").json()["candidate"]
    before = head(server)
    for holder in (None, "ada"):
        seen = server.get(f"/runs/{run_id}", holder).json()
        assert (seen["state"], seen["shown"], seen["phases"]["verify"]) == ("verified", False, None)
        for path in (f"/candidates/{candidate}/files/kernel.py", f"/runs/{run_id}/counterexample"):
            assert problem(server.get(path, holder))["status"] == 404
    for path in (f"/runs/{run_id}/request", f"/runs/{run_id}/withdrawal"):
        document = {"until": "promote"} if path.endswith("request") else {"reason": "mine now"}
        refused = problem(server.post(path, "ada", document))
        assert (refused["status"], refused["code"]) == (403, "ACTOR_FORBIDDEN")
    recorded = refused_calls(server.home, after=before, count=3)
    assert {(one["actor"], one["payload"]["code"]) for one in recorded} == {
        ("agent:ada", "NOT_FOUND"),
        ("agent:ada", "ACTOR_FORBIDDEN"),
    }
    assert server.get(f"/runs/{run_id}", "eve").json()["phases"]["verify"]["verdict"] == "accepted"
    assert server.get(f"/candidates/{candidate}/files/kernel.py", "olga").text == FILES["kernel.py"]
    assert server.post(f"/runs/{run_id}/request", "eve", {"until": "bench"}).status_code == 200
    assert server.post(f"/runs/{run_id}/withdrawal", "olga", {"reason": "the device is needed"}).status_code == 200


def test_a_published_candidate_stays_readable_when_its_bytes_are_handed_in_again(server: Served) -> None:
    (kernel,) = server.get("/kernels").json()["items"]
    task = kernel["task_id"]
    made = server.post("/submissions", "eve", {"task": task, "files": FILES, "until": None}).json()
    assert made["candidate"] == kernel["candidate"]
    shown = server.get(f"/candidates/{kernel['candidate']}").json()
    assert (shown["run_id"] != made["run_id"], shown["state"] in ("promoted", "rejected")) == (True, True)
    assert server.get(f"/candidates/{kernel['candidate']}", "eve").json()["run_id"] == made["run_id"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "isn't JSON"),
        (b"[]", 422, "expected the fields"),
        (b'{"task": 1, "files": {}}', 422, "task"),
        (b'{"task": "x", "files": {}, "extra": 1}', 422, "extra"),
        (b'{"task": "x", "task": "y", "files": {}}', 400, "more than once"),
        (b'{"task": "x", "files": {"kernel.py": NaN}}', 400, "NaN"),
        (b'{"task": "x", "files": {"kernel.py": Infinity}}', 400, "Infinity"),
        (b"[" * 100_000, 400, "isn't JSON"),
        (b'{"task": "x", "files": {"kernel.py": "1"}}', 400, "no reference.py"),
        (b'{"task": "x", "files": {"../kernel.py": "1"}}', 400, "unexpected"),
        (b'{"task": "x", "files": {}, "until": "ship"}', 422, "until"),
        (b"\xff\xfe", 400, "isn't JSON"),
        (b" " * 10_000_000, 413, "too large"),
    ],
)
def test_a_bad_body_is_refused_and_nothing_is_written(server: Served, body: bytes, status: int, said: str) -> None:
    before = head(server)
    with server.client("ada", **{"Content-Type": "application/json"}) as client:
        answer = client.post("/api/v1/submissions", content=body)
    assert answer.status_code == status, answer.text
    assert said in problem(answer)["detail"]
    assert head(server) == before


def test_bad_submissions_name_what_was_expected(server: Served) -> None:
    before = head(server)
    large = FILES | {"kernel.py": "x" * (256 * 1024 + 1)}
    for document, status in (
        (submission(server, task="nothing"), 404),
        (submission(server, task=newest_task(server)[:-1]), 404),
        (submission(server, files=FILES | {"more.py": "1"}), 400),
        (submission(server, files=large), 413),
    ):
        assert problem(server.post("/submissions", "ada", document))["status"] == status
    key = problem(server.post("/submissions", "ada", submission(server), **{"Idempotency-Key": "x" * 201}))
    assert (key["status"], "idempotency key" in key["detail"]) == (400, True)
    with server.client("ada") as client:
        plain = client.post("/api/v1/submissions", content=b"{}", headers={"Content-Type": "text/plain"})
    assert problem(plain)["status"] == 415
    assert head(server) == before


def test_a_page_of_another_origin_changes_nothing(server: Served) -> None:
    before = head(server)
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        refused = server.post("/submissions", "ada", submission(server), **headers)
        assert problem(refused)["status"] == 403, headers
    assert head(server) == before
    own = server.post("/submissions", "ada", submission(server, until=None), Origin=server.address)
    assert own.status_code == 201


def test_a_token_of_another_workspace_is_refused(server: Served, empty: Path) -> None:
    from tests.app.test_tokens import granted

    other = granted(empty, "ada")["token"]
    answer = server.get("/state", headers={"Authorization": f"Bearer {other}"})
    assert problem(answer)["code"] == "TOKEN_REFUSED"


def test_a_server_that_only_reads_and_one_without_its_workspace_say_so(
    filled_workspace: Path, tmp_path: Path
) -> None:
    from tests.app.test_tokens import granted

    home = copied(filled_workspace, tmp_path / "home")
    with served(home, {"ada": granted(home)["token"]}, "--read-only") as reading:
        assert problem(reading.post("/submissions", "ada", submission(reading)))["status"] == 403
        home.rename(tmp_path / "away")
        gone = reading.get("/state")
        assert (gone.status_code, gone.headers["retry-after"]) == (503, "1")
        assert problem(gone)["code"] == "WORKSPACE_NOT_FOUND"
        assert reading.get("/health").json()["ok"] is False
        (tmp_path / "away").rename(home)
        assert reading.get("/state").status_code == 200
        ledger = home / "kernel_registry.db"
        content = ledger.read_bytes()
        ledger.unlink()
        ledger.write_bytes(b"x" * len(content))
        assert problem(reading.get("/runs"))["code"] == "LEDGER_CORRUPT"
        ledger.unlink()
        ledger.write_bytes(content)
        assert reading.get("/runs").status_code == 200
    assert ask("ledger", "verify", "--home", home).status == 0
