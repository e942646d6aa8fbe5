"""The fold of a session refuses a history that no loop writes."""

import itertools
from typing import Any

import pytest
from pydantic import ValidationError

from forge.domain.authoring import Ask, BudgetLeft
from forge.domain.budget import MOST, Amounts, Price
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
    StepAnswered,
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
ENDED = RoundClosed(**ID, round=1, reason="no_gain", detail="")
CLOSED = SessionClosed(**ID, reason="withdrawn", detail="enough")


def step(number: int) -> StepProposed:
    return StepProposed(**ID, round=number, kind="submit", step_sha256="c" * 64, left=BudgetLeft())


def reserved(number: int, *, worst: Amounts = ONE, in_round: int = 1) -> BudgetReserved:
    named = {"round": in_round, "request": number, "purpose": "candidate", "place": 0, "for_run": "r", "worst": worst}
    return BudgetReserved(**ID, **named)  # type: ignore[arg-type]  # fields by name


def settled(number: int, *, used: Amounts = ONE, uncovered: Amounts | None = None) -> BudgetSettled:
    return BudgetSettled(**ID, round=1, request=number, used=used, uncovered=uncovered or Amounts())


def answered(number: int, *, kernel_id: str | None = None) -> StepAnswered:
    named = {"round": 1, "request": number, "entry_sha256": "e" * 64, "kernel_id": kernel_id}
    return StepAnswered(**ID, **named, speedup=None, floor_fraction=None)  # type: ignore[arg-type]  # fields by name


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
        (OPENED, step(1), reserved(2)),
        (OPENED, step(1), reserved(1, worst=Amounts()), reserved(1, worst=Amounts())),
        (OPENED, step(1), reserved(1), settled(1), settled(1)),
        (OPENED, step(1), reserved(1), answered(1), answered(1)),
        (OPENED, step(1), reserved(1), ENDED),
        (OPENED, step(1), ENDED, ENDED),
        (OPENED, step(1), ENDED, reserved(1)),
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


def test_amounts_past_what_json_holds_leave_a_session_readable() -> None:
    most = BudgetGranted(**ID, more=Amounts(micro_dollars=MOST, candidates=MOST), reason="all there is")
    state = folded(OPENED, most, most, step(1), reserved(1))
    assert state.tree.session.granted == Amounts(micro_dollars=MOST, candidates=MOST)
    assert all(node.holds for node in state.tree.nodes())
    dear = Price(model="m", prompt_micro_dollars=MOST, answer_micro_dollars=MOST)
    assert dear.of(MOST, MOST) == Amounts(micro_dollars=MOST, tokens=MOST)
    with pytest.raises(ValidationError):
        Ask(model="m", prompt="p", most_tokens=2**63)
