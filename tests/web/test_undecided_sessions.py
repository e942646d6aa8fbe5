"""What sessions, screenings and estimates tell of a run's speed before the run is decided."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from forge.app.access.tokens import READER, Caller
from forge.app.desk import answers, history
from forge.app.desk.view import View
from forge.app.runs.states import GATE, abort
from forge.app.workspace import Workspace
from forge.domain.authoring import BudgetLeft, Screened
from forge.domain.budget import Amounts
from forge.domain.evidence import Interval
from forge.events import Event, SpeedupEstimated, TrialsScreened
from forge.events.estimate import AgainstBaseline
from forge.events.session import (
    BudgetReserved,
    BudgetSettled,
    RoundClosed,
    SessionClosed,
    StepAnswered,
    StepProposed,
)
from tests.app.prepared import benchmarked
from tests.cli.asking import copied
from tests.projections.test_sessions import ID, ONE, OPENED
from tests.web.conftest import undecided

ADA, OLGA = Caller("author", "ada"), Caller("operator", "olga")
FIGURE = "3.1415"
"""A speedup that stands nowhere else."""
TYPES = ("StepAnswered", "RoundClosed", "SessionClosed", "SpeedupEstimated")


def of_session(run_id: str, task_id: str) -> list[Event]:
    """Events of a session whose only candidate is that of a run."""
    figure = Interval(ratio=float(FIGURE), low=3.0, high=3.25)
    opened = OPENED.model_copy(update={"task_id": task_id})
    asked = {"round": 1, "request": 1}
    reserved = {**asked, "purpose": "candidate", "place": 0, "for_run": run_id, "worst": ONE}
    answered = {**asked, "entry_sha256": "e" * 64, "kernel_id": None, "speedup": figure, "floor_fraction": 0.31415}
    return [
        opened,
        StepProposed(**ID, round=1, kind="submit", step_sha256="c" * 64, left=BudgetLeft()),
        BudgetReserved(**ID, **reserved),  # type: ignore[arg-type]  # fields by name
        StepAnswered(**ID, **answered),  # type: ignore[arg-type]  # fields by name
        BudgetSettled(**ID, **asked, used=ONE, uncovered=Amounts()),  # type: ignore[arg-type]  # fields by name
        RoundClosed(**ID, round=1, reason="gain", detail=f"{FIGURE}x over eager"),
    ]


def estimate(task_id: str, candidate: str) -> SpeedupEstimated:
    against = AgainstBaseline(baseline="eager", baseline_ns=31415.0, candidate_ns=10000.0, ratios=(float(FIGURE),))
    return SpeedupEstimated(
        task_id=task_id, candidate=candidate, against=(against,), control=(1.0,), left_out=(), env_sha256="d" * 64
    )


@pytest.fixture
def home(open_workspace: Path, tmp_path: Path) -> Path:
    """A workspace with an open run that is timed, in a session that has told of its speed."""
    folder = copied(open_workspace, tmp_path / "home")
    run_id = undecided(folder, "agent:search")
    with Workspace.open(folder) as workspace:
        benchmarked(workspace, run_id)
        run = workspace.find_run(run_id)
        assert run.submitted is not None
        events = of_session(run_id, run.task_id)
        events.append(SessionClosed(**ID, reason="rounds", detail=f"1 round, {FIGURE}x"))
        for number, event in enumerate(events):
            workspace.append((event,), run_id="s", key=f"session:{number}", actor="system:session")
        told = estimate(run.task_id, run.submitted.event.candidate)
        workspace.append((told,), run_id=run_id, key="estimate", actor=GATE)
    return folder


def told(home: Path, caller: Caller) -> tuple[str, dict[str, Any]]:
    """All that tells of sessions and estimates, and the events of these types by their type."""
    view = View(home)
    view.refresh()
    listed: Any = history.events(view, caller, after=None, types=TYPES, limit=50)["items"]
    found = [listed, answers.all_sessions(view, caller), answers.session(view, caller, "s")]
    found += [history.event_document(view, caller, one["seq"]) for one in listed]
    view.close()
    return orjson.dumps(found).decode(), {one["type"]: one for one in listed}


@pytest.mark.parametrize("caller", [READER, ADA])
def test_a_session_tells_no_speed_of_a_run_that_is_not_decided(home: Path, caller: Caller) -> None:
    text, events = told(home, caller)
    assert FIGURE not in text
    assert FIGURE.replace(".", "") not in text
    assert set(events) == set(TYPES)
    for one in events.values():
        assert one["withheld"] is True
        assert "until" in str(one["payload"])
        assert len(one["event_hash"]) == 64
    assert events["StepAnswered"]["payload"]["session_id"] == "s"


def test_an_operator_and_after_the_decision_everyone_is_told(home: Path) -> None:
    for caller, count in ((OLGA, len(TYPES)), (READER, 0)):
        text, events = told(home, caller)
        assert sum(FIGURE in str(one["payload"]) for one in events.values()) == count
        assert ('"best":null' in text) is (caller is READER)
    with Workspace.open(home) as workspace:
        abort(workspace, workspace.find_run("last"), "no longer needed")
    text, events = told(home, READER)
    assert not any(one["withheld"] for one in events.values())
    assert '"best":null' not in text


def test_a_screening_is_told_once_its_session_is_closed(open_workspace: Path, tmp_path: Path) -> None:
    folder = copied(open_workspace, tmp_path / "home")
    with Workspace.open(folder) as workspace:
        run = workspace.find_run("last")
        event = TrialsScreened(
            **ID,
            task_id=run.task_id,
            step=0,
            screened=Screened(reference="9" * 64, trials=()),
            samples_sha256="f" * 64,
            env_sha256="d" * 64,
            elapsed_s=1.5,
        )
        for number, one in enumerate((of_session(run.run_id, run.task_id)[0], event)):
            workspace.append((one,), run_id="s", key=f"session:{number}", actor="system:session")
        view = View(folder)
        for caller, withheld in ((READER, True), (OLGA, False)):
            view.refresh()
            (screened,) = history.events(view, caller, after=None, types=("TrialsScreened",), limit=5)["items"]  # type: ignore[misc]
            assert ("elapsed_s" not in screened["payload"]) is withheld
        closed = SessionClosed(**ID, reason="withdrawn", detail="enough")
        workspace.append((closed,), run_id="s", key="session:9", actor="system:session")
        view.refresh()
        (screened,) = history.events(view, READER, after=None, types=("TrialsScreened",), limit=5)["items"]  # type: ignore[misc]
        assert screened["payload"]["elapsed_s"] == 1.5
        view.close()
