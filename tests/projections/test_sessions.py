"""The fold of a session refuses a history that no loop writes."""

import itertools
from typing import Any

import pytest

from forge.domain.authoring import BudgetLeft
from forge.domain.budget import Amounts
from forge.domain.session import SessionTerms
from forge.errors import LedgerCorrupt
from forge.events import Event, Recorded, RunAborted
from forge.events.session import (
    BudgetGranted,
    BudgetReserved,
    BudgetSettled,
    RoundClosed,
    SessionClosed,
    SessionOpened,
    StepProposed,
)
from forge.projections.sessions import SessionState, fold

ONE = Amounts(candidates=1)
ID: dict[str, Any] = {"session_id": "s"}
OPENED = SessionOpened(
    **ID,
    task_id="t",
    author="search",
    author_sha256="a" * 64,
    seed=1,
    transcript_version=1,
    terms=SessionTerms(),
    budget=ONE,
    round_budget=None,
    prices=(),
    policy_sha256="b" * 64,
)
CLOSED = SessionClosed(**ID, reason="withdrawn", detail="enough")


def step(number: int) -> StepProposed:
    return StepProposed(**ID, round=number, kind="submit", step_sha256="c" * 64, left=BudgetLeft())


def reserved(number: int, *, worst: Amounts = ONE, in_round: int = 1) -> BudgetReserved:
    named = {"round": in_round, "request": number, "purpose": "candidate", "place": 0, "for_run": "r", "worst": worst}
    return BudgetReserved(**ID, **named)  # type: ignore[arg-type]  # fields by name


def settled(number: int, *, used: Amounts = ONE, uncovered: Amounts | None = None) -> BudgetSettled:
    return BudgetSettled(**ID, round=1, request=number, used=used, uncovered=uncovered or Amounts())


def folded(*events: Event) -> SessionState:
    seqs = itertools.count(1)
    return fold(
        Recorded(
            seq=next(seqs),
            event_id="e",
            stream="session:s",
            stream_version=1,
            recorded_at="",
            actor="system:session",
            correlation_id="s",
            causation_id=None,
            event_hash="d" * 64,
            event=event,
        )
        for event in events
    )


def test_a_request_goes_from_reserved_to_settled() -> None:
    state = folded(OPENED, step(1), reserved(1))
    assert state.current is not None
    assert state.current.open_request is not None
    assert state.tree.session.left == Amounts()
    done = folded(OPENED, step(1), reserved(1), settled(1), RoundClosed(**ID, round=1, reason="no_gain", detail=""))
    assert (done.current, done.requests, done.tree.session.settled) == (None, 1, ONE)
    over = Amounts(candidates=3)
    beyond = folded(OPENED, step(1), reserved(1), settled(1, used=over, uncovered=Amounts(candidates=2)))
    assert beyond.tree.session.settled == ONE


@pytest.mark.parametrize(
    "events",
    [
        (step(1),),
        (OPENED, OPENED),
        (OPENED, RunAborted(run_id="r", reason="x")),
        (OPENED, step(2)),
        (OPENED, step(1), step(2)),
        (OPENED, reserved(1)),
        (OPENED, step(1), reserved(1, worst=Amounts(candidates=2))),
        (OPENED, step(1), reserved(1), reserved(2)),
        (OPENED, step(1), reserved(1, in_round=2)),
        (OPENED, step(1), settled(1)),
        (OPENED, step(1), reserved(1), settled(1, used=Amounts(candidates=2))),
        (OPENED, step(1), reserved(1), settled(1, uncovered=ONE)),
        (OPENED, CLOSED, CLOSED),
        (OPENED, RoundClosed(**ID, round=1, reason="gain", detail="")),
    ],
    ids=lambda events: "-".join(type(event).__name__ for event in events),
)
def test_a_history_that_no_loop_writes_is_refused(events: tuple[Event, ...]) -> None:
    with pytest.raises(LedgerCorrupt):
        folded(*events)


def test_a_grant_lets_more_be_reserved() -> None:
    more = BudgetGranted(**ID, more=ONE, reason="more")
    state = folded(OPENED, step(1), reserved(1), more, reserved(2))
    assert all(node.holds for node in state.tree.nodes())
    assert state.tree.session.reserved == Amounts(candidates=2)
