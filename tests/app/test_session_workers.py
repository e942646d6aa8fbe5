"""A session whose candidates workers judge, several at once; without a worker there is no verdict."""

import json
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from forge.app.sessions.judging import PhasesLeft
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.sessions.opening import withdraw as withdraw_session
from forge.app.sessions.replaying import replay_session
from forge.app.sessions.workers import give_up, hand_over, judge_by_workers
from forge.app.tasks.create import open_run
from forge.app.workspace import Workspace
from forge.domain.authoring import OVERTAKEN, Draft, Judged, Submit
from forge.domain.session import SessionTerms
from forge.domain.verdict import Inconclusive, Rejected
from forge.events import CandidateRejected, Event, Recorded, RunAborted, VerificationErrored, WorkWithdrawn
from forge.events.session import BudgetReserved, BudgetSettled
from forge.events.work import LastPhase
from forge.ledger.runs.taken import is_taken
from forge.projections.sessions import SessionState
from tests.app.prepared import verified
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


def test_a_candidate_that_is_overtaken_before_a_worker_takes_it_is_closed_and_not_refused(home: Path) -> None:
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        assert hand_over(workspace, run_id, draft(), author="agent:scripted")
        found = judge_by_workers(
            workspace,
            run_id,
            draft(),
            author="agent:scripted",
            progress=lambda _: None,
            patience_s=60,
            repeats=1,
            unwanted=str,
            overtaken=lambda: True,
        )
        assert isinstance(found.entry.verdict, Inconclusive)
        assert (found.entry.was_overtaken, found.entry.passed_gates, found.device_ms) == (True, False, 0)
        run = workspace.find_run(run_id)
        assert (run.state, run.rejection) == ("aborted", None)
    assert requested(home) == []
    assert ledger_stands(home)


@pytest.mark.usefixtures("walls")
def test_a_run_that_is_closed_while_it_is_judged_ends_its_guests_and_the_worker_goes_on(home: Path) -> None:
    hanging = draft(("def fused_add_rmsnorm(", "while True:\n    pass\n\n\ndef fused_add_rmsnorm("))
    with process("-m", "forge", "work", "--home", home, "--json") as worker, Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        assert hand_over(workspace, run_id, hanging, author="agent:scripted")
        while not (is_taken(workspace.directory(run_id)) and guests_of(worker.pid)):
            assert worker.poll() is None
            time.sleep(0.02)
        assert give_up(workspace, run_id) == OVERTAKEN
        assert worker.stdout is not None
        assert json.loads(worker.stdout.readline())["state"] == "aborted"
        assert guests_of(worker.pid) == set()
        told = [one.event for one in workspace.ledger.read(stream=f"run:{run_id}")]
        assert isinstance(told[-1], RunAborted)
        assert not any(isinstance(one, CandidateRejected | VerificationErrored) for one in told)
        another = open_run(workspace, str(workspace.find_run(run_id).task_id), command="test").run_id
        assert hand_over(workspace, another, refused_draft(1), author="agent:scripted")
        assert json.loads(worker.stdout.readline())["state"] == "rejected", "it judges the next one"
    assert ledger_stands(home)


def guests_of(worker: int) -> set[int]:
    """Processes below the worker that have a process namespace of their own."""
    parents, spaces = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            pid = int(place.name)
            spaces[pid] = (place / "ns" / "pid").readlink()
            parents[pid] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
    found = set()
    for pid, space in spaces.items():
        above = pid
        while above in parents and above != worker:
            above = parents[above]
        if above == worker and space != spaces[os.getpid()]:
            found.add(pid)
    return found


def test_the_first_right_candidate_of_a_step_ends_the_judgement_of_the_others(home: Path) -> None:
    """The second candidate is verified by the test, while the session waits for the first one."""
    author = Scripted((Submit(drafts=(draft(), draft(), refused_draft(2)), first_right=True),))
    winner: list[str] = []
    with Workspace.open(home) as workspace:
        session_id = opened(workspace, author, workers=3, candidate_ms=200)

        def once_all_wait(_: Recorded[Event], state: SessionState) -> None:
            if state.current is not None and len(state.current.open_requests) == 3 and not winner:
                winner.append(str(state.current.requests[1].reserved.for_run))
                verified(workspace, winner[0])

        state = work_off(workspace, session_id, author, Means(watch=once_all_wait))
        runs = [workspace.find_run(str(one.reserved.for_run)) for one in state.rounds[0].requests]
        assert [one.state for one in runs] == ["aborted", "verified", "aborted"]
        assert [(one.was_overtaken, one.passed_gates) for one in judged(author)] == [
            (True, False),
            (False, True),
            (True, False),
        ]
        assert list(replay_session(workspace, session_id, author).divergences) == []
    assert requested(home) == []
    assert ledger_stands(home)
