"""A search through a session: what is screened is recorded, and a template that fails ends the session."""

import json
from pathlib import Path

import pytest

from forge.app.demo.demo import examples_folder
from forge.app.sessions.author_folders import read_source
from forge.app.sessions.finding import find_session
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.sessions.replaying import replay_session
from forge.app.sessions.trials import DraftScreener
from forge.app.workspace import Workspace
from forge.authors.kinds import AuthorSource, make_author
from forge.domain.authoring import FailedTrial, TimedTrial
from forge.domain.budget import Amounts
from forge.errors import UsageError
from forge.events import CandidateSubmitted, TrialsScreened

TEMPLATE = examples_folder() / "templates" / "cpp_fused_add_rmsnorm"
ROOM = Amounts(wall_ms=10**8, device_ms=10**8, candidates=2)
SPACE = {"parameters": [{"name": "LANES", "values": [4, 8, 99]}]}


def source(*changes: tuple[str, str]) -> AuthorSource:
    """The shipped template with a small space, and changes of its kernel."""
    whole = read_source("search", TEMPLATE, {"batch": 2, "most_trials": 2, "finalists": 1, "judge_own": 0})
    kernel = whole.files["kernel.py"]
    for old, new in changes:
        assert old in kernel
        kernel = kernel.replace(old, new)
    return whole.model_copy(update={"files": {**whole.files, "kernel.py": kernel, "space.json": json.dumps(SPACE)}})


def search(workspace: Workspace, made_from: AuthorSource) -> list[TrialsScreened]:
    """Work a search off, replay it, and return what was screened."""
    task = workspace.find_run("last").task
    assert task is not None
    author = make_author(made_from)
    request = SessionRequest(task=task.event.task_id, seed=2, budget=ROOM)
    session_id = open_session(workspace, author, request, source=made_from)
    work_off(workspace, session_id, author, Means(screener=DraftScreener(workspace, lambda _: None)))
    assert list(replay_session(workspace, session_id, author).divergences) == []
    found = [one.event for one in workspace.ledger.read(stream=f"session:{session_id}", types=("TrialsScreened",))]
    return [event for event in found if isinstance(event, TrialsScreened)]


@pytest.mark.slow
@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
def test_a_template_whose_own_setting_doesnt_build_ends_the_search(home: Path) -> None:
    with Workspace.open(home) as workspace:
        (screened,) = search(workspace, source(("float sum = 0.0f;", "flot sum = 0.0f;")))
        state = find_session(workspace, "last")
        assert state.closed is not None
        assert state.closed.event.detail.startswith("reference_failed: the template's own setting failed")
        assert screened.screened.reference_failed is not None
        assert screened.screened.trials == ()
        assert json.loads(workspace.blobs.get(screened.samples_sha256)) == {"drafts": {}}


@pytest.mark.slow
@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
def test_trials_are_recorded_and_a_search_without_gain_hands_nothing_in(home: Path) -> None:
    """LANES above 8 makes each row be summed a thousand times, and LANES 8 does not compile."""
    slowed = "for (int again = 0; again < (LANES > 8 ? 1000 : 1); ++again)\n        normalise_row(x + start"
    changes = (
        ("normalise_row(x + start", slowed),
        ("constexpr bool ADD", "static_assert(LANES != 8);\nconstexpr bool ADD"),
    )
    with Workspace.open(home) as workspace:
        before = workspace.ledger.read(types=("CandidateSubmitted",))
        submitted = sum(isinstance(one.event, CandidateSubmitted) for one in before)
        (screened,) = search(workspace, source(*changes))
        results = {dict(one.setting.values)["LANES"]: one.result for one in screened.screened.trials if one.setting}
        assert isinstance(results[8], FailedTrial)
        assert results[8].reason.code == "COMPILE_ERROR"
        slow = results[99]
        assert isinstance(slow, TimedTrial)
        assert slow.speedup.high < 1
        state = find_session(workspace, "last")
        assert state.closed is not None
        assert state.closed.event.detail.startswith("no_gain")
        after = workspace.ledger.read(types=("CandidateSubmitted",))
        assert sum(isinstance(one.event, CandidateSubmitted) for one in after) == submitted


def test_a_template_with_a_bad_space_is_refused_before_a_session_opens() -> None:
    bad = source().model_copy(update={"files": {**source().files, "space.json": '{"parameters": []}'}})
    with pytest.raises(UsageError, match="at least 1"):
        make_author(bad)


def test_a_template_of_another_operation_is_refused_before_a_session_opens(home: Path) -> None:
    other = make_author(read_source("search", TEMPLATE.parent / "cpp_softmax", {}))
    with Workspace.open(home) as workspace:
        task = workspace.find_run("last").task
        assert task is not None
        before = workspace.ledger.head.seq
        request = SessionRequest(task=task.event.task_id, seed=2, budget=ROOM)
        with pytest.raises(UsageError, match="for softmax in cpp: expected one for fused_add_rmsnorm in cpp"):
            open_session(workspace, other, request)
        assert workspace.ledger.head.seq == before
