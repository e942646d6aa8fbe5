"""A language model as the author, over real HTTP: bad answers cost what they cost, and real gates decide."""

import json
from pathlib import Path
from typing import Any

import pytest

from forge.app.sessions.choice import AuthorChoice, answering, prices_for, source_of
from forge.app.sessions.finding import find_session
from forge.app.sessions.language_models import LanguageModel
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.sessions.replaying import replay_session
from forge.app.workspace import Workspace
from forge.authors.kinds import make_author
from forge.authors.model.author import ModelAuthor
from forge.domain.budget import Amounts, Price
from forge.domain.feedback import DOCUMENT_BYTES
from forge.events import CandidateSubmitted, KernelPromoted
from forge.events.session import ModelFailed, ModelLost
from forge.projections.sessions import SessionState
from tests.app.model_server import Refuse, Reply, Say, Server, serving
from tests.app.prepared import benchmarked
from tests.app.test_session_cheats import killed_at
from tests.app.test_sessions import Killed, killing_after
from tests.cli.asking import HONEST, ledger_stands
from tests.evil.described import CANDIDATES
from tests.platforms.test_packs import PERF

ROOM = Amounts(micro_dollars=10**9, tokens=10**8, wall_ms=10**8, device_ms=10**8, candidates=9)
NAME = "openai:scripted"
PRICE = Price(model=NAME, prompt_micro_dollars=1_000_000, answer_micro_dollars=2_000_000)
KEY = "sk-not-to-be-recorded"


def kernel(text: str, hypothesis: str) -> Say:
    """Return an answer with a kernel whose entry point is that of the starting files."""
    named = text.replace("def fused_add_rmsnorm(", "def kernel(")
    return Say(f"HYPOTHESIS: {hypothesis}\n```python kernel.py\n{named}```\n")


HONEST_KERNEL = (HONEST / "kernel.py").read_text()
(CHEAT,) = (one.read_text() for one in CANDIDATES if one.stem == "cpp_static_cache")


def opened(workspace: Workspace, server: Server, tmp_path: Path, **options: str) -> tuple[str, Any, LanguageModel]:
    """Open a session of the workspace's task with the scripted model."""
    task = workspace.find_run("last").task_id
    (tmp_path / "key").write_text(KEY)
    source = source_of(
        workspace,
        task,
        AuthorChoice(kind="model", model=NAME, base_url=f"{server.url}/v1", options=options),
    )
    author, model = make_author(source), answering(workspace, source, tmp_path / "key")
    assert isinstance(model, LanguageModel)
    model.pause = lambda _: None
    request = SessionRequest(task=task, seed=1, budget=ROOM, prices=prices_for(source, (PRICE,)))
    return open_session(workspace, author, request, source=source), author, model


def worked(home: Path, tmp_path: Path, *replies: Reply) -> tuple[SessionState, Server]:
    with serving(*replies) as server, Workspace.open(home) as workspace:
        session_id, author, model = opened(workspace, server, tmp_path)
        return work_off(workspace, session_id, author, Means(model=model)), server


def feedback_in(prompt: str) -> dict[str, Any]:
    document = prompt.rpartition("# Feedback")[2].partition("```json\n")[2].rpartition("```")[0]
    assert len(document.encode()) <= 2 * DOCUMENT_BYTES, "indented it has more bytes"
    found: dict[str, Any] = json.loads(document)
    return found


@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
def test_prose_a_wrong_kernel_and_a_cheat_teach_and_only_the_right_kernel_is_promoted(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = HONEST_KERNEL.replace("+ eps", "+ 2.0f * eps").replace("mean + eps", "mean + 2.0f * eps")
    wrong = wrong if wrong != HONEST_KERNEL else HONEST_KERNEL.replace("1.0f /", "1.01f /")
    assert wrong != HONEST_KERNEL
    replies = (
        Say("Kernels are a fascinating subject."),
        kernel(wrong, "a first try"),
        kernel("# the same\n" + wrong, "a first try with a comment"),
        kernel(CHEAT, "answers are kept"),
        kernel(HONEST_KERNEL, "one pass over the row"),
    )
    with serving(*replies) as server, Workspace.open(home) as workspace:
        session_id, author, model = opened(workspace, server, tmp_path, passes="functional")
        with monkeypatch.context() as patched:
            killed_at(patched, "CandidateVerified")
            with pytest.raises(Killed):
                work_off(workspace, session_id, author, Means(model=model))
        benchmarked(workspace, workspace.find_run("last").run_id)  # with samples that no load of the machine spoils
        state = work_off(workspace, session_id, author, Means(model=model))
        prompts = [body["messages"][-1]["content"] for _, _, body in server.requests]
        assert len(prompts) == len(replies), "no answered request is sent again"
        told = [feedback_in(prompt) for prompt in prompts]
        assert told[0]["verdict"] == "none"
        assert "no fenced block" in told[1]["note"]
        assert (told[2]["verdict"], told[2]["reason"]["code"]) == ("rejected", "INCORRECT_NUMERICAL")
        assert set(told[2]["counterexample"]) >= {"shape", "expected", "got", "snippet"}
        assert "same as in answer 2" in told[3]["note"]
        assert told[4]["reason"]["code"] in (
            "STATE_CARRIED",
            "REPLAYED_OUTPUT",
            "INCORRECT_NUMERICAL",
            "STATIC_POLICY",
        )
        assert [one["hypothesis"] for one in told[4]["tried"]] == ["a first try", "answers are kept"]
        events = [one.event for one in workspace.ledger.read()]
        (promoted,) = [one for one in events if isinstance(one, KernelPromoted)]
        assert state.closed is not None
        assert state.closed.event.detail.startswith("finalists_judged: attempt 3 passed every gate")
        assert sum(isinstance(one, CandidateSubmitted) for one in events) == 3, "equal bytes are judged once"
        assert [one.kernel_id for one in state.answers()][-1] == promoted.kernel_id
        settled = state.tree.session.settled
        assert (settled.tokens, settled.micro_dollars) == (5 * 150, 5 * (100 + 2 * 50))
        assert replay_session(workspace, session_id, author).divergences == ()
    assert ledger_stands(home)
    assert not any(KEY.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_answers_without_a_candidate_end_a_session_with_its_money_counted(home: Path, tmp_path: Path) -> None:
    state, server = worked(home, tmp_path, Refuse(401), Refuse(429), Refuse(500), Say("half", cut=True))
    assert state.closed is not None
    assert state.closed.event.reason == "nothing_left"
    assert "4 answers in a row had no candidate; the last one: malformed" in state.closed.event.detail
    requests = [one for each in state.rounds for one in each.requests]
    assert [one.ended.cause for one in requests if isinstance(one.ended, ModelFailed)] == [
        *("refused", "refused", "unreachable", "malformed")
    ]
    spent = state.tree.session.settled.micro_dollars
    assert spent == sum(one.reserved.worst.micro_dollars for one in requests[2:]), "what may be paid for, in full"
    assert len(server.requests) == 4


def test_a_model_without_a_price_is_not_asked(home: Path, tmp_path: Path) -> None:
    with serving(Say("x")) as server, Workspace.open(home) as workspace:
        session_id, author, model = opened(workspace, server, tmp_path)
        del session_id
        request = SessionRequest(task=workspace.find_run("last").task_id, seed=1, budget=ROOM)
        free = open_session(workspace, author, request)
        state = work_off(workspace, free, author, Means(model=model))
        assert state.closed is not None
        assert (state.closed.event.reason, server.requests) == ("budget", [])
        assert f"the price of model {NAME!r} isn't known" in state.closed.event.detail
        assert find_session(workspace, free).requests == 0


UNFIT = Say(f'```python kernel.py\n{HONEST_KERNEL}```\n```json metadata.json\n{{"name": "x"}}\n```\n')
"""An answer whose candidate is refused at submission, so that no guest is started."""


def test_a_model_session_that_is_killed_after_any_event_sends_no_answered_request_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = (Say("no code"), UNFIT, Say("none"), Refuse(429), Say("none"), Say("none"))
    whole: list[object] = []
    with Workspace.open(home) as workspace, serving() as server:
        for fatal in range(1, 60):
            server.replies, server.requests = list(replies), []
            session_id, author, model = opened(workspace, server, tmp_path)
            try:
                with monkeypatch.context() as patched:
                    killing_after(patched, fatal)
                    work_off(workspace, session_id, author, Means(model=model))
                killed = False
            except Killed:
                killed = True
            state = find_session(workspace, session_id)
            if state.closed is None:
                server.replies = [*replies[len(server.requests) :], *replies[-1:]]
                state = work_off(workspace, session_id, author, Means(model=model))
            lost = sum(isinstance(one.ended, ModelLost) for each in state.rounds for one in each.requests)
            assert len(server.requests) - lost <= len(replies)
            assert len({headers["x-request-id"] for _, headers, _ in server.requests}) == len(server.requests)
            assert state.closed is not None
            assert (state.closed.event.reason, state.tree.session.reserved) == ("nothing_left", Amounts())
            assert state.tree.session.settled.candidates == 1
            assert replay_session(workspace, session_id, author).divergences == ()
            whole.append(killed)
            if not killed:
                break
    assert len(whole) > 30, "killed after each of its events"
    assert ledger_stands(home)


def test_the_numbers_of_a_profile_are_metrics_that_a_diagnosis_may_cite(home: Path, tmp_path: Path) -> None:
    (tmp_path / "stat.txt").write_text(PERF)
    with Workspace.open(home) as workspace:
        task = workspace.find_run("last").task_id
        profile = f"perf:{tmp_path / 'stat.txt'}"
        choice = AuthorChoice(kind="model", model=NAME, base_url="http://127.0.0.1:1/v1", profile=profile)
        author = make_author(source_of(workspace, task, choice))
        assert isinstance(author, ModelAuthor)
        assert {"perf.ipc", "perf.cache_misses"} <= {one.id for one in author.options.profile}
        assert all(f"`{one.id}` | {one.value:.6g}" in author.brief for one in author.options.profile)
