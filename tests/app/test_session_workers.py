"""A session whose candidates workers judge, several at once; without a worker there is no verdict."""

from pathlib import Path

import pytest

from forge.app.sessions.judging import PhasesLeft
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.sessions.opening import withdraw as withdraw_session
from forge.app.sessions.replaying import replay_session
from forge.app.sessions.workers import WON, judge_by_workers
from forge.app.workspace import Workspace
from forge.domain.authoring import Draft, Judged, Submit
from forge.domain.session import SessionTerms
from forge.domain.verdict import Inconclusive, Rejected
from forge.events import CandidateRejected, Event, Recorded, WorkWithdrawn
from forge.events.session import BudgetReserved, BudgetSettled
from forge.events.work import LastPhase
from forge.projections.sessions import SessionState
from tests.app.scripted import Scripted, draft
from tests.app.test_sessions import ROOM
from tests.app.test_work import process, requested
from tests.cli.asking import ledger_stands


def refused_draft(number: int) -> Draft:
    """A draft that lacks its function, which is refused from its sources: no guest is started for it."""
    return draft(("def fused_add_rmsnorm(", f"def another_{number}("))


def opened(workspace: Workspace, author: Scripted, **terms: int) -> str:
    request = SessionRequest(
        task=str(workspace.find_run("last").task_id), seed=1, budget=ROOM, terms=SessionTerms(**terms)
    )
    return open_session(workspace, author, request)


def judged(author: Scripted) -> list[Judged]:
    return [one for one in author.seen[-1] if isinstance(one, Judged)]


def test_two_workers_judge_a_steps_candidates_side_by_side_and_each_once(home: Path) -> None:
    author = Scripted((Submit(drafts=tuple(map(refused_draft, range(3)))),))
    with (
        process("-m", "forge", "work", "--home", home, "--json"),
        process("-m", "forge", "work", "--home", home, "--json"),
        Workspace.open(home) as workspace,
    ):
        session_id = opened(workspace, author, workers=2)
        state = work_off(workspace, session_id, author, Means())
        assert [type(one.verdict) for one in judged(author)] == [Rejected] * 3
        rejected = list(workspace.ledger.read(types=(CandidateRejected.TYPE,)))
        runs = [one.reserved.for_run for one in state.rounds[0].requests]
        assert sorted(one.event.run_id for one in rejected if isinstance(one.event, CandidateRejected)) == sorted(
            filter(None, runs)
        )
        kinds = (BudgetReserved.TYPE, BudgetSettled.TYPE)
        told = [one.event for one in workspace.ledger.read(stream=f"session:{session_id}", types=kinds)]
        assert [type(one) for one in told[:3]] == [BudgetReserved, BudgetReserved, BudgetSettled]
        assert list(replay_session(workspace, session_id, author).divergences) == []
    assert requested(home) == []
    assert ledger_stands(home)


def test_a_candidate_that_no_worker_takes_has_no_verdict(home: Path) -> None:
    author = Scripted((Submit(drafts=(refused_draft(0),)),))
    with Workspace.open(home) as workspace:
        work_off(workspace, opened(workspace, author, workers=2, candidate_ms=300), author, Means())
        (only,) = judged(author)
        assert isinstance(only.verdict, Inconclusive)
        assert only.verdict.reason.message == "no worker took it within 0.3 s: start one with forge work"
    assert requested(home) == []


def test_a_withdrawn_session_leaves_no_request(home: Path) -> None:
    author = Scripted((Submit(drafts=(refused_draft(0), refused_draft(1))),))
    with Workspace.open(home) as workspace:
        session_id = opened(workspace, author, workers=2)

        def once_both_wait(_: Recorded[Event], state: SessionState) -> None:
            if state.closed is None and state.current is not None and len(state.current.open_requests) == 2:
                withdraw_session(workspace, session_id, "enough")

        state = work_off(workspace, session_id, author, Means(watch=once_both_wait))
        assert state.closed is not None
        assert len(list(workspace.ledger.read(types=(WorkWithdrawn.TYPE,)))) == 2
    assert requested(home) == []


def test_each_phase_is_run_once_and_as_many_again_as_the_terms_allow() -> None:
    """The promotion isn't a repeat, however often the benchmark was one."""
    left = PhasesLeft(2)
    due: list[LastPhase | None] = ["verify", "bench", "bench", "bench", "promote", "promote", None]
    assert [left.take(phase) for phase in due] == ["verify", "bench", "bench", "bench", "promote", None, None]


@pytest.mark.parametrize(("name", "usual"), [("workers", 0), ("repeats", 3)])
def test_usual_terms_are_recorded_as_before(name: str, usual: int) -> None:
    for value in (usual, usual + 1):
        recorded = SessionTerms.model_validate({name: value}).model_dump(mode="json")
        assert recorded.get(name, usual) == value
        assert (name in recorded) is (value != usual)


def test_a_candidate_whose_step_is_won_is_withdrawn_before_a_worker_takes_it(home: Path) -> None:
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        found = judge_by_workers(
            workspace,
            run_id,
            draft(),
            author="agent:scripted",
            progress=lambda _: None,
            patience_s=60,
            repeats=1,
            unwanted=lambda: WON,
        )
        assert isinstance(found.entry.verdict, Inconclusive)
        assert (found.entry.verdict.reason.message, found.device_ms) == (WON, 0)
        (withdrawn,) = workspace.ledger.read(types=(WorkWithdrawn.TYPE,))
        assert isinstance(withdrawn.event, WorkWithdrawn)
        assert withdrawn.event.reason == WON
    assert requested(home) == []
    assert ledger_stands(home)
