"""Prompts of one step are sent at the same time: reserved before, recorded as they are answered, and replayed."""

from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from threading import Event as Signal

import pytest

from forge.app.sessions.finding import find_session
from forge.app.sessions.model_exchange import ModelAnswer, ModelUnanswered
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.sessions.opening import withdraw as withdraw_session
from forge.app.sessions.replaying import replay_session
from forge.app.workspace import Workspace
from forge.domain.authoring import Ask, Branch, Replied
from forge.domain.budget import Amounts, Price
from forge.events import Event, Recorded
from forge.events.session import BudgetReserved, ModelLost, ModelResponded
from forge.projections.sessions import SessionState
from tests.app.scripted import Scripted
from tests.app.test_sessions import Killed, killing_after
from tests.cli.asking import ledger_stands

PRICE = Price(model="m", prompt_micro_dollars=1_000_000, answer_micro_dollars=1_000_000)
STEP = Ask(
    model="m",
    prompt="zero",
    most_tokens=1000,
    beside=(Branch(prompt="one", wording="plain"), Branch(prompt="two", wording="bytes")),
)
WORST = 1000 + 4
"""Micro-dollars of the longest prompt's worst case."""
ROOM = Amounts(micro_dollars=10**6, tokens=10**6, wall_ms=10**8, candidates=9)


LONG_S = 120.0
"""Seconds that only a hang takes, however busy the machine is."""


class Together:
    """Answers once as many prompts are there as it waits for; the last one is answered first."""

    def __init__(self, count: int = 3) -> None:
        self.here = Barrier(count, timeout=LONG_S)
        self.turns = {"two": Signal(), "one": Signal(), "zero": Signal()}
        self.turns["two"].set()
        self.asked: list[str] = []

    def let_go(self) -> None:
        """Make no prompt wait any more."""
        self.here.abort()
        for one in self.turns.values():
            one.set()

    def answer(self, step: Ask, *, request_id: str) -> ModelAnswer:
        del request_id
        self.asked.append(step.prompt)
        if len(self.asked) <= self.here.parties:
            with suppress(BrokenBarrierError):  # the process was killed before the others were sent
                self.here.wait()
        self.turns[step.prompt].wait(LONG_S)
        for one in self.turns.values():
            if not one.is_set():
                one.set()
                break
        if step.prompt == "one":
            raise ModelUnanswered("timeout", "too late")
        return ModelAnswer(text=f"answer {step.prompt}", prompt_tokens=10, answer_tokens=20)


def in_any_order() -> Together:
    model = Together(1)
    for one in model.turns.values():
        one.set()
    return model


def opened(workspace: Workspace, author: Scripted, budget: Amounts = ROOM) -> str:
    task = str(workspace.find_run("last").task_id)
    return open_session(workspace, author, SessionRequest(task=task, seed=1, budget=budget, prices=(PRICE,)))


def asking() -> Scripted:
    return Scripted((STEP, STEP, STEP))  # a list's author has one entry for each: three here


def test_prompts_are_reserved_before_any_answer_and_each_is_settled_as_it_is_answered(home: Path) -> None:
    author, model = asking(), Together()
    with Workspace.open(home) as workspace:
        session_id = opened(workspace, author)
        state = work_off(workspace, session_id, author, Means(model=model))
        assert sorted(model.asked) == ["one", "two", "zero"]
        told = [one.event for one in workspace.ledger.read(stream=f"session:{session_id}")]
        kinds = [one.TYPE for one in told if one.TYPE.startswith(("Budget", "Model"))]
        assert kinds[:6] == ["BudgetReserved", "ModelRequested"] * 3
        answered = [one.request for one in told if isinstance(one, ModelResponded)]
        assert answered == [3, 1] or answered == [1, 3], "in the order of arrival"
        log = author.seen[-1]
        assert [one.text for one in log if isinstance(one, Replied)] == ["answer zero", None, "answer two"]
        lost = next(one.worst for one in told if isinstance(one, BudgetReserved) and one.request == 2)
        assert state.tree.session.settled.micro_dollars == 30 + 30 + lost.micro_dollars
        assert state.tree.session.reserved == Amounts()
        assert replay_session(workspace, session_id, author).divergences == ()
    assert ledger_stands(home)


def test_what_the_budget_does_not_cover_is_not_sent_beside_the_others(home: Path) -> None:
    author, model = asking(), Together(2)
    with Workspace.open(home) as workspace:
        budget = ROOM.model_copy(update={"micro_dollars": 2 * WORST + 500})
        session_id = opened(workspace, author, budget)
        for one in model.turns.values():
            one.set()
        work_off(workspace, session_id, author, Means(model=model))
        assert sorted(model.asked[:2]) == ["one", "zero"]
        assert replay_session(workspace, session_id, author).divergences == ()
    assert ledger_stands(home)


def test_a_kill_with_prompts_in_flight_settles_each_in_full_and_asks_for_them_anew(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(home) as workspace:
        for fatal in range(2, 8):
            author, model = asking(), Together()
            session_id = opened(workspace, author)
            with monkeypatch.context() as patched:
                killing_after(patched, fatal)
                with pytest.raises(Killed):
                    work_off(workspace, session_id, author, Means(model=model))
            model.let_go()  # threads of the process that was killed
            state = find_session(workspace, session_id)
            if state.closed is None:
                state = work_off(workspace, session_id, author, Means(model=in_any_order()))
            assert state.tree.session.reserved == Amounts()
            lost = [one for each in state.rounds for one in each.requests if isinstance(one.ended, ModelLost)]
            assert len({one.reserved.place for one in lost}) == len(lost)
            assert replay_session(workspace, session_id, author).divergences == (), fatal
    assert ledger_stands(home)


def test_a_session_that_is_withdrawn_while_prompts_are_in_flight_records_what_they_cost(home: Path) -> None:
    author, model = asking(), Together()
    with Workspace.open(home) as workspace:
        session_id = opened(workspace, author)

        def once_all_are_sent(_: Recorded[Event], state: SessionState) -> None:
            if state.closed is None and state.current is not None and len(state.current.open_requests) == 3:
                withdraw_session(workspace, session_id, "enough")

        state = work_off(workspace, session_id, author, Means(model=model, watch=once_all_are_sent))
        assert state.closed is not None
        assert state.tree.session.reserved == Amounts()
        assert state.tree.session.settled.micro_dollars > 60
        assert replay_session(workspace, session_id, author).divergences == ()
    assert ledger_stands(home)
