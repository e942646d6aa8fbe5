"""A replay runs the loop again over the transcript: equal payloads, or the first difference with both values."""

import dataclasses
from pathlib import Path

import pytest

from forge.app.sessions.finding import find_session
from forge.app.sessions.opening import Means, grant, work_off
from forge.app.sessions.replaying import replay_session
from forge.app.workspace import Workspace
from forge.domain.authoring import Ask, Submit
from forge.domain.budget import Amounts
from forge.errors import ReplayDiverged, TranscriptRefused
from forge.events import Event, Recorded
from forge.events.session import RoundClosed
from forge.pipeline.sessions.transcript import replay
from tests.app.scripted import Scripted, draft
from tests.app.test_sessions import ASK, BROKEN, STEPS, Killed, Parrot, killing_after, opened, worked


def events_of(workspace: Workspace, session_id: str) -> list[Recorded[Event]]:
    return list(workspace.ledger.read(stream=f"session:{session_id}"))


def test_a_session_replays_to_equal_payloads_and_writes_nothing(home: Path) -> None:
    session_id = worked(home, Scripted(STEPS), model=Parrot()).session_id
    with Workspace.open(home) as workspace:
        before = workspace.ledger.head
        found = replay_session(workspace, session_id, Scripted(STEPS))
        assert workspace.ledger.head == before
        assert (found.divergences, found.closed) == ((), True)
        assert found.events == len(events_of(workspace, session_id))


def test_a_session_that_was_killed_and_given_more_replays_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    author = Scripted(STEPS)
    with Workspace.open(home) as workspace:
        for fatal in (2, 4, 7, 12):
            session_id = opened(workspace, author)
            with monkeypatch.context() as patched:
                killing_after(patched, fatal)
                with pytest.raises(Killed):
                    work_off(workspace, session_id, author, Means(model=Parrot()))
            open_still = replay_session(workspace, session_id, author)
            assert (open_still.closed, open_still.divergences) == (False, ())
            assert open_still.events == find_session(workspace, session_id).events
            grant(workspace, session_id, Amounts(candidates=1), "more")
            work_off(workspace, session_id, author, Means(model=Parrot()))
            found = replay_session(workspace, session_id, author)
            assert (found.closed, found.divergences) == (True, ())


def test_the_first_difference_is_named_with_both_values(home: Path) -> None:
    session_id = worked(home, Scripted(STEPS), model=Parrot()).session_id
    other = Ask(model="m", prompt="write another kernel", most_tokens=100)
    with Workspace.open(home) as workspace:
        with pytest.raises(TranscriptRefused, match="expected the same author"):
            replay_session(workspace, session_id, Scripted([other, *STEPS[1:]]))
        events = events_of(workspace, session_id)
        with pytest.raises(ReplayDiverged) as differs:
            replay(events, Scripted([other, *STEPS[1:]]), workspace.blobs.get)
        named = "(StepProposed), step.prompt: recorded 'write a kernel', replayed 'write another kernel'"
        assert named in differs.value.message
        assert f"event {events[1].seq} " in differs.value.message
        found = replay_session(workspace, session_id, Scripted([other, *STEPS[1:]]), lenient=True)
    assert len(found.divergences) == 1
    assert found.events == len(events), "it goes on from what is recorded"


def test_another_step_and_another_rule_are_seen(home: Path) -> None:
    session_id = worked(home, Scripted([Submit(drafts=(BROKEN,)), ASK]), model=Parrot()).session_id
    with Workspace.open(home) as workspace:
        events = events_of(workspace, session_id)
        two = Submit(drafts=(BROKEN, draft()))
        found = replay(events, Scripted([two, ASK]), workspace.blobs.get, lenient=True)
        assert found.divergences[0].field == "step.drafts"
        assert found.events == len(events)
        found = replay(events, Scripted([ASK, ASK]), workspace.blobs.get, lenient=True)
        assert [one.type for one in found.divergences] == ["StepProposed"]
        changed = [_as_a_gain(one) for one in events]
        with pytest.raises(ReplayDiverged, match="\\(RoundClosed\\), reason: recorded 'gain', replayed 'refused'"):
            replay(changed, Scripted([Submit(drafts=(BROKEN,)), ASK]), workspace.blobs.get)


def _as_a_gain(recorded: Recorded[Event]) -> Recorded[Event]:
    if not isinstance(recorded.event, RoundClosed) or recorded.event.round != 1:
        return recorded
    event = recorded.event.model_copy(update={"reason": "gain"})
    return dataclasses.replace(recorded, event=event)
