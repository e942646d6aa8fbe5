"""A verification finds a session that no loop wrote: budgets, rounds, answers and the actors behind them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forge.app.ledger.ledger_answers import verify_ledger
from forge.app.workspace import Workspace
from forge.domain.authoring import BudgetLeft
from forge.domain.budget import Amounts
from forge.domain.digest import canonical
from forge.domain.session import SessionTerms
from forge.errors import ActorForbidden
from forge.events import Event
from forge.events.session import (
    BudgetGranted,
    BudgetReserved,
    BudgetSettled,
    RoundClosed,
    SessionOpened,
    StepAnswered,
    StepProposed,
)
from tests.cli.asking import ask, built_once, copied
from tests.ledger.edits.copy import Copy

ONE = Amounts(candidates=1)
ID: dict[str, Any] = {"session_id": "20260101T000000_search_000000"}
IN_ROUND: dict[str, Any] = {**ID, "round": 1, "request": 1}


def events(workspace: Workspace) -> tuple[Event, ...]:
    """One round with one settled screening, and a grant."""
    kept = workspace.blobs.put(b"{}")
    opened = SessionOpened(
        **ID,
        task_id="t",
        author="search",
        author_sha256=kept,
        seed=1,
        transcript_version=1,
        terms=SessionTerms(),
        budget=ONE,
        round_budget=None,
        prices=(),
        policy_sha256=workspace.keep_policy(),
    )
    return (
        opened,
        StepProposed(**ID, round=1, kind="screen", step_sha256=kept, left=BudgetLeft()),
        BudgetReserved(**IN_ROUND, purpose="screening", place=0, for_run=None, worst=ONE),
        StepAnswered(**IN_ROUND, entry_sha256=kept, kernel_id=None, speedup=None, floor_fraction=None),
        BudgetSettled(**IN_ROUND, used=ONE, uncovered=Amounts()),
        BudgetGranted(**ID, more=ONE, reason="more"),
        RoundClosed(**ID, round=1, reason="no_gain", detail=""),
    )


@pytest.fixture(scope="session")
def session_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one session; to be copied, never changed."""

    def build(folder: Path) -> None:
        assert ask("init", folder).status == 0
        with Workspace.open(folder) as workspace:
            for place, event in enumerate(events(workspace)):
                actor = "cli:ada" if isinstance(event, BudgetGranted) else "system:session"
                workspace.append((event,), run_id=ID["session_id"], key=f"session:{place}", actor=actor)

    return built_once(tmp_path_factory, "forged_sessions", build)


@pytest.fixture
def copy(session_home: Path, tmp_path: Path) -> Copy:
    return Copy(copied(session_home, tmp_path / "home"))


def _same(_: Any) -> None:
    pass


def changed(**fields: object) -> Callable[[Any], None]:
    return lambda payload: payload.update(fields)


def altered(kind: str, **fields: object) -> Callable[[Copy], None]:
    """Change the event of a type where it stands, with right hashes after it."""

    def act(copy: Copy) -> None:
        rows = copy.rows()
        place = max(at for at, row in enumerate(rows) if row.type == kind)
        payload = json.loads(rows[place].payload) | fields
        copy.write([*rows[:place], rows[place]._replace(payload=canonical(payload).decode()), *rows[place + 1 :]])

    return act


FORGED: dict[str, Callable[[Copy], None]] = {
    "a reservation past the budget": altered("BudgetReserved", worst={**ONE.model_dump(), "candidates": 2}),
    "a reservation of another round": altered("BudgetReserved", round=2),
    "a settlement that hides what wasn't covered": altered(
        "BudgetSettled", used={**ONE.model_dump(), "candidates": 9}
    ),
    "a smaller budget than was used": altered("SessionOpened", budget=Amounts().model_dump()),
    "a negative amount": altered("BudgetSettled", used={**ONE.model_dump(), "candidates": -1}),
    "an amount past what JSON holds": altered("BudgetGranted", more={**ONE.model_dump(), "tokens": 2**53}),
    "an answer that names a kernel that no run promoted": altered("StepAnswered", kernel_id="cpp_gelu_v1"),
    "a second answer": lambda copy: copy.append_again("StepAnswered", _same),
    "a second settlement": lambda copy: copy.append_again("BudgetSettled", _same),
    "a second opening": lambda copy: copy.append_again("SessionOpened", _same),
    "a session that was never opened": lambda copy: copy.append_again(
        "StepProposed", changed(session_id="another"), stream="session:another"
    ),
    "more budget by an author": lambda copy: copy.append_again("BudgetGranted", _same, actor="agent:search"),
    "more budget by Forge itself": lambda copy: copy.append_again("BudgetGranted", _same, actor="system:session"),
    "a reservation by an author": lambda copy: copy.append_again(
        "BudgetReserved", changed(request=2), actor="agent:search"
    ),
}


def problems(copy: Copy) -> object:
    copy.unpublish()
    return verify_ledger(copy.home)["problems"]


def test_a_session_that_is_only_chained_anew_is_sound(copy: Copy) -> None:
    copy.write(copy.rows())
    assert problems(copy) == []


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_session_is_found(forged: str, copy: Copy) -> None:
    FORGED[forged](copy)
    assert problems(copy) != []


def test_no_author_writes_what_decides_about_budgets(copy: Copy) -> None:
    with Workspace.open(copy.home) as workspace:
        for event in (BudgetGranted(**ID, more=ONE, reason="mine"), events(workspace)[2]):
            with pytest.raises(ActorForbidden, match="'agent:search' may not write"):
                workspace.append((event,), run_id=ID["session_id"], key="k", actor="agent:search")
