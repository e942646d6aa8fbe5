"""Sessions: an author proposes within a budget, the loop carries out, and a kill anywhere costs nothing twice."""

from pathlib import Path
from typing import Any

import pytest

from forge.app.sessions.finding import find_session
from forge.app.sessions.model_exchange import ModelAnswer, ModelUnanswered
from forge.app.sessions.opening import Means, SessionRequest, fenced, grant, open_session, withdraw, work_off
from forge.app.sessions.replaying import replay_session
from forge.app.workspace import Workspace
from forge.domain.authoring import Ask, Denied, Draft, Judged, Missed, Replied, Screen, Step, Submit, Wish
from forge.domain.budget import Amounts, Price
from forge.domain.session import SessionTerms
from forge.domain.verdict import Rejected
from forge.errors import ActorForbidden, PhaseOutOfOrder, SessionNotFound, SessionTaken, TranscriptRefused
from forge.events import Event, Recorded
from forge.events.session import ModelLost, StepProposed, WishRefused
from forge.ledger.store import Ledger
from forge.projections.sessions import SessionState
from tests.app.scripted import Scripted, draft
from tests.app.test_crash import killed
from tests.cli.asking import ask, ledger_stands

ROOM = Amounts(micro_dollars=1_000_000, tokens=100_000, wall_ms=10_000_000, device_ms=10_000_000, candidates=10)
PRICE = Price(model="m", prompt_micro_dollars=1_000_000, answer_micro_dollars=2_000_000)
ASK = Ask(model="m", prompt="write a kernel", most_tokens=100)
NO_CANDIDATE = Draft(files={"kernel.py": "x", "../kernel.py": "y"}, hypothesis="it isn't one")
BROKEN = draft().model_copy(update={"files": draft().files | {"metadata.json": '{"name": "x"}'}})
STEPS: tuple[Step, ...] = (
    ASK,
    Wish(wish="tolerance", detail="a bound of 1"),
    Screen(drafts=(BROKEN,), reference=BROKEN),
    Submit(drafts=(BROKEN, NO_CANDIDATE)),
    ASK,
)


class Parrot:
    """A model that repeats the prompt and counts what it was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def answer(self, step: Ask, *, request_id: str) -> ModelAnswer:
        self.sent.append(request_id)
        return ModelAnswer(text=step.prompt.upper(), prompt_tokens=3, answer_tokens=5)


class Deaf:
    """A model that can't be reached."""

    def answer(self, step: Ask, *, request_id: str) -> ModelAnswer:
        raise ModelUnanswered("timeout", f"no answer to {request_id} of {step.most_tokens} tokens in 1 s")


def opened(workspace: Workspace, author: Scripted, **changed: Any) -> str:
    """Open a session of the workspace's task with room for everything."""
    task_id = workspace.find_run("last").task_id
    named = {"task": task_id, "seed": 7, "budget": ROOM, "prices": (PRICE,)}
    return open_session(workspace, author, SessionRequest(**(named | changed)))


def worked(home: Path, author: Scripted, *, model: Any = None, **changed: Any) -> SessionState:
    with Workspace.open(home) as workspace:
        return work_off(workspace, opened(workspace, author, **changed), author, Means(model=model))


def ends(state: SessionState) -> list[str]:
    return [one.closed.reason for one in state.rounds if one.closed is not None]


def test_a_session_goes_round_by_round_to_its_end_and_its_author_learns_each_answer(home: Path) -> None:
    author, parrot = Scripted(STEPS), Parrot()
    state = worked(home, author, model=parrot)
    assert ends(state) == ["answered", "wish_refused", "screened", "refused", "answered", "finished"]
    assert state.closed is not None
    assert (state.closed.event.reason, len(parrot.sent)) == ("nothing_left", 2)
    said, wish, missed, broken, none, again = author.seen[-1]
    assert said == again == Replied(text="WRITE A KERNEL")
    assert wish == Denied(wish="tolerance")
    assert isinstance(missed, Missed)
    for judged, told in ((broken, "op"), (none, "unexpected")):
        assert isinstance(judged, Judged)
        assert isinstance(judged.verdict, Rejected)
        assert judged.verdict.reason.code == "BAD_SUBMISSION"
        assert told in judged.verdict.reason.message
    assert state.tree.session.reserved == Amounts()
    assert state.tree.session.settled.candidates == 2
    assert state.tree.session.settled.micro_dollars == 2 * (3 + 10)
    with Workspace.open(home) as workspace:
        written = {one.event.TYPE: one.actor for one in workspace.ledger.read(stream=f"session:{state.session_id}")}
        assert written["StepProposed"] == written["WishRefused"] == "agent:scripted"
        assert {written[name] for name in ("StepAnswered", "BudgetReserved", "RoundClosed")} == {"system:session"}
        assert written["SessionOpened"].startswith("cli:")
        runs = workspace.run_states().runs.values()
        assert [one.state for one in runs if one.started.event.command.startswith("agent ")] == ["aborted"] * 2
    assert ledger_stands(home)


class Killed(BaseException):
    """Stands for the end of the process."""


def killing_after(monkeypatch: pytest.MonkeyPatch, fatal: int) -> None:
    """End the process, as far as this test's code sees, after the n-th append that wrote something."""
    append, count = Ledger.append, [0]

    def counted(self: Ledger, *arguments: Any, **options: Any) -> Any:
        made = append(self, *arguments, **options)
        count[0] += not made.replayed
        if count[0] == fatal:
            raise Killed
        return made

    monkeypatch.setattr(Ledger, "append", counted)


def told(state: SessionState) -> list[object]:
    """What a session came to, without run ids and times."""
    found: list[object] = []
    for one in state.rounds:
        found.append((one.step.step_sha256, one.closed and (one.closed.reason, one.closed.detail)))
        found += [request.answered.entry_sha256 for request in one.requests if request.answered]
    return [*found, state.closed and state.closed.event.reason]


@pytest.mark.slow
def test_a_session_that_is_killed_after_any_event_goes_on_to_the_same_end(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    author = Scripted([*STEPS[:3], Submit(drafts=(BROKEN,))])
    whole, lost, fatal = told(worked(home, author, model=Parrot())), 0, 0
    with Workspace.open(home) as workspace:
        while True:
            fatal += 1
            session_id, parrot = opened(workspace, author), Parrot()
            means = Means(model=parrot)
            try:
                with monkeypatch.context() as patched:
                    killing_after(patched, fatal)
                    work_off(workspace, session_id, author, means)
                break
            except Killed:
                state = find_session(workspace, session_id)
            if state.closed is None:
                state = work_off(workspace, session_id, author, means)
            assert told(state) == whole
            assert len(parrot.sent) == 1, "no answered request is sent again"
            settled = state.tree.session.settled
            requests = [one for each in state.rounds for one in each.requests]
            gone = [one for one in requests if isinstance(one.ended, ModelLost)]
            lost += len(gone)
            assert settled.micro_dollars == 13 + sum(one.reserved.worst.micro_dollars for one in gone)
            assert (settled.candidates, state.tree.session.reserved) == (1, Amounts())
    assert fatal > 20, "killed after each of its events, and of its runs'"
    assert lost == 1, "the request that was recorded and not answered"
    assert ledger_stands(home)


def test_too_little_budget_refuses_before_anything_is_sent(home: Path) -> None:
    parrot = Parrot()
    short = ROOM.model_copy(update={"tokens": len(ASK.prompt) + ASK.most_tokens - 1})
    state = worked(home, Scripted([ASK]), model=parrot, budget=short)
    assert (parrot.sent, ends(state), state.closed and state.closed.event.reason) == ([], ["budget"], "budget")
    refused = state.rounds[0].refused
    assert refused is not None
    assert refused.detail.startswith("tokens=113 is left, expected at least tokens=114")
    assert state.rounds[0].requests == ()


def test_a_budget_of_zero_ends_a_session_with_its_first_request(home: Path) -> None:
    state = worked(home, Scripted([Submit(drafts=(BROKEN,))]), budget=Amounts())
    assert state.closed is not None
    assert (state.closed.event.reason, state.requests) == ("budget", 0)
    assert "candidates=0 is left, expected at least" in state.closed.event.detail


def test_a_model_without_a_known_price_is_refused(home: Path) -> None:
    parrot = Parrot()
    state = worked(home, Scripted([ASK]), model=parrot, prices=())
    assert (parrot.sent, state.closed and state.closed.event.reason) == ([], "budget")
    assert state.closed is not None
    assert state.closed.event.detail == "the price of model 'm' isn't known"


def test_a_round_has_a_budget_of_its_own(home: Path) -> None:
    limit = ROOM.model_copy(update={"candidates": 1})
    state = worked(home, Scripted([Submit(drafts=(BROKEN, BROKEN))]), round_budget=limit)
    assert ends(state) == ["budget"]
    assert state.tree.session.settled.candidates == 1


def test_an_answer_that_never_came_is_settled_in_full_unless_its_cost_is_known(home: Path) -> None:
    state = worked(home, Scripted([ASK]), model=Deaf())
    (request,) = state.rounds[0].requests
    assert state.tree.session.settled == request.reserved.worst
    author = Scripted([ASK])
    state = worked(home, author)
    assert state.tree.session.settled.micro_dollars == 0
    assert author.seen[-1][0] == Replied(text=None, failure="unreachable: this session has no model to ask")


def test_rounds_in_which_all_is_refused_end_a_session(home: Path) -> None:
    steps = [Submit(drafts=(BROKEN,))] * 4
    state = worked(home, Scripted(steps), terms=SessionTerms(refused_rounds=2))
    assert (ends(state), state.closed and state.closed.event.reason) == (["refused"] * 2, "divergence")
    state = worked(home, Scripted(steps), terms=SessionTerms(refused_rounds=9, rounds_without_gain=3))
    assert (ends(state), state.closed and state.closed.event.reason) == (["refused"] * 3, "no_gain")
    state = worked(home, Scripted([Wish(wish="gate_off", detail="leaks")] * 9), terms=SessionTerms(rounds=4))
    assert (len(state.rounds), state.closed and state.closed.event.reason) == (4, "rounds")


def test_one_of_two_processes_is_refused_and_that_is_on_record(home: Path) -> None:
    author = Scripted([Wish(wish="budget", detail="more")])
    with Workspace.open(home) as workspace:
        session_id = opened(workspace, author)
        with fenced(workspace.runs_root, session_id) as is_ours:
            assert is_ours
            with pytest.raises(SessionTaken, match="is taken: another process works on it"):
                work_off(workspace, session_id, author, Means())
        state = work_off(workspace, session_id, author, Means())
        wishes = [one.event for one in workspace.ledger.read(types=("WishRefused",))]
    assert [one.wish for one in wishes if isinstance(one, WishRefused)] == ["resume", "budget"]
    assert ends(state) == ["wish_refused", "finished"]


def test_a_withdrawn_session_is_not_gone_on_with(home: Path) -> None:
    author = Scripted(STEPS)
    with Workspace.open(home) as workspace:
        session_id = opened(workspace, author)

        def until_the_second_round(_: Recorded[Event], state: SessionState) -> None:
            if len(state.rounds) == 2 and state.closed is None:
                withdraw(workspace, session_id, "enough")

        state = work_off(workspace, session_id, author, Means(model=Parrot(), watch=until_the_second_round))
        assert state.closed is not None
        assert (state.closed.event.reason, len(state.rounds)) == ("withdrawn", 2)
        with pytest.raises(PhaseOutOfOrder, match="is closed \\(withdrawn\\)"):
            work_off(workspace, session_id, author, Means())
        with pytest.raises(PhaseOutOfOrder, match="expected one that is open"):
            grant(workspace, session_id, ROOM, "more")


def test_what_a_person_records_between_a_look_and_a_reservation_counts(home: Path) -> None:
    """The watch is told what was just read: what it records then comes between the look and the reservation."""
    author, model = Scripted((ASK, ASK)), Parrot()
    with Workspace.open(home) as workspace:
        session_id = opened(workspace, author, budget=Amounts(micro_dollars=1, tokens=1, wall_ms=10**7))

        def meddling(recorded: Recorded[Event], state: SessionState) -> None:
            if not isinstance(recorded.event, StepProposed):
                return
            if len(state.rounds) == 1:
                grant(workspace, session_id, ROOM, "the first request was too dear")
            else:
                withdraw(workspace, session_id, "enough")

        state = work_off(workspace, session_id, author, Means(model=model, watch=meddling))
        assert state.closed is not None
        assert (state.closed.event.reason, state.requests) == ("withdrawn", 1)
        assert len(model.sent) == 1
        assert list(replay_session(workspace, session_id, author).divergences) == []


def test_only_a_person_grants_more(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Workspace.open(home) as workspace:
        session_id = opened(workspace, Scripted(STEPS), budget=Amounts(candidates=1))
        state = grant(workspace, session_id, Amounts(candidates=2), "it goes well")
        assert state.tree.session.granted == Amounts(candidates=3)
        monkeypatch.setattr("forge.app.workspace.command_line_actor", lambda: "agent:search")
        with pytest.raises(ActorForbidden, match="may not write BudgetGranted: it may be written by cli:"):
            grant(workspace, session_id, Amounts(candidates=2), "please")
        assert find_session(workspace, session_id).tree.session.granted == Amounts(candidates=3)


def test_another_author_or_version_does_not_go_on_with_a_session(home: Path) -> None:
    with Workspace.open(home) as workspace:
        session_id = opened(workspace, Scripted(STEPS))
        with pytest.raises(TranscriptRefused, match="expected the same author, template and options"):
            work_off(workspace, session_id, Scripted(STEPS[:1]), Means())
        event = find_session(workspace, session_id).opened.event
        other = event.model_copy(update={"session_id": "of-tomorrow", "transcript_version": 2})
        workspace.append((other,), run_id="of-tomorrow", key="test:other")
        with pytest.raises(TranscriptRefused, match="has transcript version 2: this Forge reads 1"):
            work_off(workspace, "of-tomorrow", Scripted(STEPS), Means())
        wishes = [one.event for one in workspace.ledger.read(types=("WishRefused",))]
        assert [one.session_id for one in wishes if isinstance(one, WishRefused)] == [session_id, "of-tomorrow"]
        with pytest.raises(SessionNotFound, match="0 sessions start with 'x'"):
            find_session(workspace, "x")
        assert find_session(workspace, "last").session_id == "of-tomorrow"


def test_a_process_that_is_killed_anywhere_leaves_a_session_that_another_ends(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "drafts" / "one"
    folder.mkdir(parents=True)
    for name, text in BROKEN.files.items():
        (folder / name).write_text(text)
    task_id = ask("task", "list", "--home", home, "--json").document[0]["task_id"]
    command = ("agent", "run", task_id, "--author", "folders", "--template", folder.parent)
    seen = set()
    for crashed in killed(home, tmp_path / "killed", *command, most=12, status=1):
        assert ledger_stands(crashed)
        sessions = ask("agent", "list", "--home", crashed, "--json").document
        seen.add(tuple((one["state"], one["rounds"]) for one in sessions))
        if not sessions:
            ask(*command, "--home", crashed)
        elif sessions[0]["state"] == "open":
            assert ask("agent", "resume", "last", "--home", crashed).status == 1
        (session,) = ask("agent", "list", "--home", crashed, "--json").document
        assert (session["state"], session["rounds"], session["used"]["candidates"]) == ("nothing_left", 2, 1)
        assert ask("agent", "replay", "last", "--home", crashed, "--json").document["divergences"] == []
        assert ledger_stands(crashed)
    assert len(seen) >= 3, seen
