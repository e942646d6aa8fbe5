"""What is in a run stays with its author and the operators until the run is decided, wherever it could be read."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from forge.app.access.tokens import READER, Caller
from forge.app.desk import answers, history, runs
from forge.app.desk.view import View
from forge.app.desk.withheld import WITHHELD, hidden_shapes
from forge.app.runs.states import GATE, abort
from forge.app.workspace import Workspace
from forge.domain.verdict import Reason
from forge.errors import UsageError
from forge.events import CandidateRejected
from tests.app.prepared import benchmarked, submitted
from tests.cli.asking import copied
from tests.web.conftest import undecided

EVE, ADA, OLGA = Caller("author", "eve"), Caller("author", "ada"), Caller("operator", "olga")
INSIDE = {"CandidateSubmitted", "CandidateVerified", "BaselineRecorded", "BenchmarkRecorded"}
"""Types of events that tell of a run's candidate."""


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory, open_workspace: Path) -> Path:
    """A workspace whose only run is eve's, timed and not yet decided; to be copied, never changed."""
    folder = copied(open_workspace, tmp_path_factory.mktemp("undecided") / "home")
    run_id = undecided(folder, "agent:eve")
    with Workspace.open(folder) as workspace:
        benchmarked(workspace, run_id)
    return folder


@pytest.fixture
def view(timed: Path) -> Iterator[View]:
    found = View(timed)
    found.refresh()
    yield found
    found.close()


def inside(view: View, caller: Caller) -> list[dict[str, object]]:
    found = history.events(view, caller, after=None, types=tuple(INSIDE), limit=200)["items"]
    assert isinstance(found, list)
    assert {one["type"] for one in found} == INSIDE
    return found


@pytest.mark.parametrize("caller", [READER, ADA])
def test_events_of_an_undecided_run_keep_their_place_and_not_their_payload(view: View, caller: Caller) -> None:
    run_id = view.workspace.find_run("last").run_id
    for one in inside(view, caller):
        assert one["withheld"] is True
        assert one["payload"] == {"run_id": run_id, "withheld": one["payload"]["withheld"]}  # type: ignore[index]
        assert "until the run is decided" in str(one["payload"])
        assert len(str(one["event_hash"])) == 64
        alone = history.event_document(view, caller, int(str(one["seq"])))
        assert alone["payload"] == one["payload"]
        assert len(str(alone["payload_sha256"])) == 64
    opened = history.events(view, caller, after=None, types=("RunStarted", "PlanAccepted"), limit=9)["items"]
    assert isinstance(opened, list)
    assert not any(one["withheld"] for one in opened)


@pytest.mark.parametrize("caller", [EVE, OLGA])
def test_its_author_and_an_operator_read_its_events(view: View, caller: Caller) -> None:
    assert all("until the run is decided" not in str(one["payload"]) for one in inside(view, caller))
    assert all(len(str(one["payload"])) > 300 for one in inside(view, caller))


def test_once_it_is_decided_everyone_reads_its_events(timed: Path, tmp_path: Path) -> None:
    home = copied(timed, tmp_path / "home")
    with Workspace.open(home) as workspace:
        abort(workspace, workspace.find_run("last"), "no longer needed")
    view = View(home)
    view.refresh()
    assert inside(view, READER) == inside(view, OLGA)
    assert all("until the run is decided" not in str(one["payload"]) for one in inside(view, READER))
    view.close()


def test_a_missing_file_keeps_one_event_back_and_no_other(timed: Path, tmp_path: Path) -> None:
    home = copied(timed, tmp_path / "home")
    with Workspace.open(home) as workspace:
        run = workspace.find_run("last")
        assert run.task is not None
        digest = run.task.event.task.held_out_sha256
    for stored in home.rglob(f"*{digest[2:]}*"):
        stored.unlink()
    view = View(home)
    view.refresh()
    found = inside(view, OLGA)
    assert all("missing or damaged" in str(one["payload"]) and one["withheld"] for one in found)
    assert str(home) not in orjson.dumps(found).decode()
    view.close()


def over_all(view: View) -> str:
    """Each answer over the whole history that may have a speed in it."""
    found: list[object] = [
        answers.experiments(view, op=None, gpu=None, ended=None, text=None, limit=50)["rows"],
        answers.leaderboard(view, wanted={}, baseline=None)["rows"],
        answers.notes(view, op="fused_add_rmsnorm", gpu=None)["experiments"],
        runs.all_runs(view, READER, limit=50)["items"],
    ]
    plain = ("fast_p", "effectiveness", "claims", "regressions")
    found += [answers.audit(view, name, {}, limit=50)["rows"] for name in plain]
    with suppress(UsageError):  # this machine has no measured ceilings
        found.append(answers.audit(view, "roofline", {"gpu": "cpu"}, limit=50)["rows"])
    return orjson.dumps(found).decode()


def figures(view: View) -> list[str]:
    """The speeds of the last run, as they are written in JSON."""
    with view.workspace.publication.tables() as tables:
        found = tables.execute("SELECT speedup, low, high FROM latest_speedups").fetchall()
    assert found
    return [orjson.dumps(one).decode() for row in found for one in row]


def test_answers_over_the_history_have_no_figure_of_an_undecided_run(timed: Path, tmp_path: Path) -> None:
    home = copied(timed, tmp_path / "home")
    view = View(home)
    view.refresh()
    told = over_all(view)
    assert not any(one in told for one in figures(view))
    with view.published.publication.tables() as tables:
        assert tables.execute("SELECT count(*) FROM latest_speedups").fetchone() == (0,)
        assert tables.execute("SELECT count(*), count(speedup) FROM trials").fetchone() == (1, 0)
    (own,) = runs.all_runs(view, EVE, limit=5)["items"]  # type: ignore[misc]
    assert orjson.dumps(own["speedup"]).decode() in figures(view)
    with Workspace.open(home) as workspace:
        abort(workspace, workspace.find_run("last"), "no longer needed")
    view.refresh()
    told = over_all(view)
    assert any(one in told for one in figures(view))
    view.close()


def test_no_answer_names_a_held_out_shape(open_workspace: Path, tmp_path: Path) -> None:
    home = copied(open_workspace, tmp_path / "home")
    with Workspace.open(home) as workspace:
        run_id = workspace.find_run("last").run_id
        candidate = submitted(workspace, run_id)
        shape = hidden_shapes(workspace, workspace.find_run(run_id))[0]
        named = ", ".join(f"{axis}={size}" for axis, size in shape.items())  # as gates write it
        event = CandidateRejected(
            run_id=run_id,
            task_id=candidate.task_id,
            candidate=candidate.candidate,
            stage="verify",
            reason=Reason(code="INCORRECT_NUMERICAL", message=f"3.2 x the bound at {named}"),
        )
        workspace.append((event,), run_id=run_id, key="test:rejected", actor=GATE)
    view = View(home)
    view.refresh()
    refused = answers.audit(view, "rejections", {"by": "code"}, limit=5)
    assert WITHHELD in orjson.dumps(refused).decode()
    for told in (refused, history.events(view, OLGA, after=None, types=None, limit=200)):
        assert named not in orjson.dumps(told).decode()
    view.close()
