"""The ground of a replay: the loop runs again, and each event that it makes is compared with the recorded one.

Nothing is sent, run or written. What the outside said, and for how long, comes from the transcript.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from forge.domain.authoring import Ask, Author, Draft, Screen
from forge.domain.digest import Digest, sha256
from forge.errors import ReplayDiverged
from forge.events import Event, Recorded
from forge.events.run import RunStarted
from forge.events.screen import TrialsScreened
from forge.events.session import (
    BudgetGranted,
    BudgetReserved,
    BudgetSettled,
    ModelFailed,
    ModelResponded,
    SessionClosed,
    StepAnswered,
    WishRefused,
)
from forge.pipeline.sessions.divergence import Divergence, divergence
from forge.pipeline.sessions.ground import SYSTEM, Interrupted, Judgement, Reply, ScreenOutcome
from forge.pipeline.sessions.learned import ENTRY
from forge.pipeline.sessions.loop import Loop
from forge.projections import sessions
from forge.projections.sessions import SessionState


class _EndOfTranscript(Exception):
    """The session is open, and everything that was recorded of it has been replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of a replay."""

    events: int
    """Number of events that were compared, or that came from outside the loop."""
    divergences: tuple[Divergence, ...]
    closed: bool
    """True if the session was closed. Otherwise it can be continued."""


def replay(
    events: Sequence[Recorded[Event]], author: Author, content: Callable[[Digest], bytes], *, lenient: bool = False
) -> Replayed:
    """Run a session's loop again over its transcript; raise ReplayDiverged at the first difference.

    With `lenient`, note the difference and go on from what is recorded.
    """
    ground = Transcript(events, content, lenient=lenient)
    with suppress(_EndOfTranscript):
        Loop(author, ground).run()
    return Replayed(
        events=ground.place,
        divergences=tuple(ground.divergences),
        closed=any(isinstance(one.event, SessionClosed) for one in events),
    )


@dataclass
class Transcript:
    """Answers the loop from recorded events."""

    events: Sequence[Recorded[Event]]
    stored: Callable[[Digest], bytes]
    lenient: bool = False
    place: int = 1
    """Number of recorded events that were replayed."""
    divergences: list[Divergence] = field(default_factory=list)
    _state: SessionState | None = None
    _made: dict[Digest, bytes] = field(default_factory=dict)
    _interrupted_at: int = 0

    @property
    def state(self) -> SessionState:
        """Return the state after the events that were replayed, and those that came from outside the loop."""
        if self._state is None:
            self._state = sessions.begin(self.events[0])
        while self.place < len(self.events) and _is_from_outside(self.events[self.place].event):
            self._advance()
        return self._state

    def content(self, digest: Digest) -> bytes:
        """Return recorded bytes."""
        return self.stored(digest)

    def record(
        self, *events: Event, seen: SessionState, key: str, actor: str = SYSTEM, blobs: tuple[bytes, ...] = ()
    ) -> bool:
        """Compare the events of the session with the recorded ones.

        Raises ReplayDiverged at the first difference, unless the replay is lenient.
        """
        del seen, key, actor
        self._made |= {sha256(blob): blob for blob in blobs}
        for event in events:
            if isinstance(event, RunStarted):
                continue
            recorded = self._next()
            found = divergence(recorded, event, stored=self.stored, made=self._made.get)
            if found is not None:
                self.divergences.append(found)
                if not self.lenient:
                    raise ReplayDiverged(f"the replay differs at {found}", hint="forge agent replay --lenient --help")
            self._advance()
            if found is not None and found.field == "type":
                break
        return True

    def new_run(self, request: int) -> RunStarted:
        """Return the recorded run's beginning."""
        reserved = self._next().event
        run_id = reserved.for_run if isinstance(reserved, BudgetReserved) else None
        opened = self.state.opened.event
        return RunStarted(
            run_id=run_id or f"none was recorded for request {request}",
            task_id=opened.task_id,
            command="replay",
            policy_sha256=opened.policy_sha256,
        )

    def start(self, reserved: BudgetReserved, draft: Draft) -> None:
        """Do nothing: the recorded judgement comes later."""

    def judge(self, reserved: BudgetReserved, draft: Draft, *, first_right: bool) -> Judgement:
        """Return the recorded judgement on the draft, and what it used."""
        del draft, first_right
        answered, settled = self._answer(reserved)
        entry = ENTRY.validate_json(self.stored(answered.entry_sha256))
        return Judgement(
            entry=entry,
            used=settled.used,
            speedup=answered.speedup,
            floor_fraction=answered.floor_fraction,
        )

    def screen(self, reserved: BudgetReserved, step: Screen) -> ScreenOutcome:
        """Return the recorded trials of the step, and what they used."""
        del step
        beside = tuple(one.event for one in self._ahead(1) if isinstance(one.event, TrialsScreened))
        answered, settled = self._answer(reserved, behind=len(beside))
        entry = ENTRY.validate_json(self.stored(answered.entry_sha256))
        return ScreenOutcome(entry=entry, used=settled.used, events=beside)

    def begins(self, request: int) -> bool:
        """Return whether the next recorded event is that request's reservation."""
        following = self._next().event
        return isinstance(following, BudgetReserved) and following.request == request

    def begin_ask(self, reserved: BudgetReserved, step: Ask) -> None:
        """Do nothing: the recorded answer comes later."""

    def next_reply(self, begun: Collection[int]) -> tuple[int, Reply]:
        """Return the answer that was recorded next."""
        ended, settled = (one.event for one in self._ahead(2))
        if not isinstance(ended, ModelResponded | ModelFailed) or not isinstance(settled, BudgetSettled):
            raise self._interrupted()
        if ended.request not in begun:
            raise self._interrupted()
        text = self.stored(ended.response_sha256) if isinstance(ended, ModelResponded) else b""
        return ended.request, Reply(ended=ended, used=settled.used, text=text)

    def _answer(self, reserved: BudgetReserved, *, behind: int = 0) -> tuple[StepAnswered, BudgetSettled]:
        """Return the recorded answer of a request; raise Interrupted if its process ended before."""
        answered, settled = (one.event for one in self._ahead(behind + 2)[behind:])
        if not isinstance(answered, StepAnswered) or not isinstance(settled, BudgetSettled):
            raise self._interrupted()
        if answered.request != reserved.request:
            raise self._interrupted()
        return answered, settled

    def _ahead(self, count: int) -> Sequence[Recorded[Event]]:
        """Return the next events that the loop made."""
        assert self.state is not None
        found = self.events[self.place : self.place + count]
        if not found:
            raise _EndOfTranscript
        if len(found) < count:
            raise self._interrupted()
        return found

    def _interrupted(self) -> Interrupted:
        """Return what ends a request; raise ReplayDiverged where the transcript doesn't go on as a session does."""
        if self._interrupted_at == self.place:
            recorded = self.events[self.place]
            raise ReplayDiverged(
                f"event {recorded.seq} ({recorded.event.TYPE}) answers no open request: expected an answer to one"
            )
        self._interrupted_at = self.place
        return Interrupted()

    def _next(self) -> Recorded[Event]:
        (found,) = self._ahead(1)
        return found

    def _advance(self) -> None:
        assert self._state is not None
        self._state = sessions.apply(self._state, self.events[self.place])
        self.place += 1


def _is_from_outside(event: Event) -> bool:
    """Return whether another process or a person wrote the event, not the loop."""
    match event:
        case BudgetGranted():
            return True
        case WishRefused():
            return event.round is None
        case SessionClosed():
            return event.reason == "withdrawn"
        case _:
            return False
