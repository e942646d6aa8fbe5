"""Cheats that an author hands in through the loop: none is promoted. The honest kernel beside them is, once."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from forge.app.sessions.finding import find_session
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.sessions.replaying import replay_session
from forge.app.sessions.report import cost_of, report
from forge.app.workspace import Workspace
from forge.domain.authoring import Draft, Judged, Submit
from forge.domain.budget import Amounts
from forge.domain.task import HeldOut
from forge.domain.verdict import Accepted, Rejected
from forge.events import CandidateSubmitted, CandidateVerified, KernelPromoted
from forge.ledger.store import Ledger
from forge.operations import find_operation
from forge.pipeline.held_out import drawn_for_one
from tests.app.prepared import benchmarked
from tests.app.scripted import Scripted, draft
from tests.app.test_sessions import Killed
from tests.cli.asking import ledger_stands
from tests.evil.described import CANDIDATES, described

CHEATS = ("does_not_compile", "cpp_static_cache", "cpp_row_in_a_byte")
ROOM = Amounts(wall_ms=10**8, device_ms=10**8, candidates=9)


def cheat(name: str) -> Draft:
    (path,) = [one for one in CANDIDATES if one.stem == name]
    files = draft().files | {"kernel.py": path.read_text()}
    metadata = json.loads(files["metadata.json"])
    files["metadata.json"] = json.dumps(metadata | {"name": name})
    return Draft(files=files, hypothesis="it looks fast")


def killed_at(monkeypatch: pytest.MonkeyPatch, type_name: str) -> None:
    """End the process, as far as this test's code sees, after an event of this type."""
    append = Ledger.append

    def watched(self: Ledger, events: Any, **options: Any) -> Any:
        made = append(self, events, **options)
        if any(type_name == event.TYPE for event in events):
            raise Killed
        return made

    monkeypatch.setattr(Ledger, "append", watched)


@pytest.mark.usefixtures("walls", "short_series")
def test_no_cheat_is_promoted_through_the_loop_and_the_honest_kernel_is_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = Submit(drafts=(draft(), cheat(CHEATS[0])), first_right=True)
    author = Scripted([Submit(drafts=tuple(map(cheat, CHEATS))), last])
    with Workspace.open(home) as workspace:
        task = workspace.find_run("last").task
        assert task is not None
        request = SessionRequest(task=task.event.task_id, seed=1, budget=ROOM)
        session_id = open_session(workspace, author, request)
        with monkeypatch.context() as patched:
            killed_at(patched, "CandidateVerified")
            with pytest.raises(Killed):
                work_off(workspace, session_id, author, Means())
        benchmarked(workspace, workspace.find_run("last").run_id)  # with samples that no load of the machine spoils
        work_off(workspace, session_id, author, Means())
        state = find_session(workspace, session_id)
        *cheats, honest = author.seen[-1]
        for name, entry in zip(CHEATS, cheats, strict=True):
            (path,) = [one for one in CANDIDATES if one.stem == name]
            assert isinstance(entry, Judged)
            assert isinstance(entry.verdict, Rejected), (name, entry)
            assert entry.verdict.reason.code in described(path).codes, (name, entry)
        assert isinstance(honest, Judged)
        assert isinstance(honest.verdict, Accepted), honest
        events = [one.event for one in workspace.ledger.read()]
        (promoted,) = [one for one in events if isinstance(one, KernelPromoted)]
        assert promoted.kernel_id == honest.kernel_id
        (verified,) = [one for one in events if isinstance(one, CandidateVerified)]
        assert [one.closed and one.closed.reason for one in state.rounds] == ["refused", "gain", "finished"]
        _is_judged_at_shapes_of_its_own(workspace, verified)
        handed_in = workspace.ledger.read(types=(CandidateSubmitted.TYPE,))
        assert {one.actor for one in handed_in} == {"agent:scripted"}
        assert len(state.rounds[1].requests) == 1, "the right kernel ends its step: the other draft isn't begun"
        (row,) = report(workspace)
        assert (row["candidates"], row["correct"], row["promoted"], row["fast_1"]) == (4, 1, 1, 0.25)
        assert cost_of(state)["per_promoted_kernel"] == state.tree.session.settled.model_dump(mode="json")
        assert replay_session(workspace, session_id, author).divergences == ()
    assert ledger_stands(home)


def _is_judged_at_shapes_of_its_own(workspace: Workspace, verified: CandidateVerified) -> None:
    """The recorded seed gives the shapes of the report, and none of them is one of the task's."""
    run = workspace.find_run(verified.run_id)
    assert run.task is not None
    assert verified.held_out_seed is not None
    task = run.task.event.task
    fixed = HeldOut.model_validate(orjson.loads(workspace.blobs.get(task.held_out_sha256)))
    report_now = orjson.loads(workspace.blobs.get(verified.report_sha256))
    drawn = drawn_for_one(task, find_operation(task.op), fixed, verified.held_out_seed)
    assert report_now["held_out"] == list(drawn)
    asked = [one["shape"] for one in report_now["workloads"]]
    assert all(shape in asked for shape in drawn)
    assert not any(shape in verified.shapes_verified for shape in drawn)
