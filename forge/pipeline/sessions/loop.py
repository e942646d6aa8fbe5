"""The loop of a session: one transition at a time, each decided from what is recorded.

A process may be killed anywhere. The next one reads the same state and goes on. It doesn't ask again what was
answered, and settles in full what may have been sent.
"""

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from forge.domain.authoring import (
    Ask,
    Author,
    BudgetLeft,
    Finished,
    Judged,
    LogEntry,
    Screen,
    Step,
    Submit,
    Wish,
)
from forge.domain.budget import NOTHING, Amounts, shortage
from forge.domain.digest import canonical, sha256
from forge.errors import IntegrityError
from forge.events import Event
from forge.events.session import (
    BudgetRefused,
    BudgetReserved,
    BudgetSettled,
    ModelLost,
    ModelResponded,
    RoundClosed,
    SessionClosed,
    StepAnswered,
    StepProposed,
    WishRefused,
)
from forge.pipeline.sessions.ground import SYSTEM, Ground, Interrupted, Judgement
from forge.pipeline.sessions.learned import Learned
from forge.pipeline.sessions.requests import asked_at, free_place, model_requested
from forge.pipeline.sessions.stop import EndOfRound, end_of_round, end_of_session
from forge.pipeline.sessions.worst_case import purpose_of, worst_case
from forge.projections.sessions import RequestState, RoundState, SessionState

STEP: TypeAdapter[Any] = TypeAdapter(Step)


@dataclass
class Loop:
    """The loop of one session with one author."""

    author: Author
    ground: Ground
    _learned: Learned = field(init=False)
    _asked: dict[int, BudgetReserved] = field(default_factory=dict)
    """Requests of models that this process has begun, and that aren't answered."""

    def __post_init__(self) -> None:
        self._learned = Learned(self.ground.content)

    def run(self) -> SessionState:
        """Go on until the session is closed; return its last state."""
        while (state := self.ground.state).closed is None:
            self.advance(state)
        while self._asked:  # a person closed the session meanwhile: what is paid for is recorded
            self._await_reply()
        return self.ground.state

    def advance(self, state: SessionState) -> None:
        """Take the one transition that follows from the state."""
        current = state.current
        if current is None:
            self._between_rounds(state)
        elif (left_open := current.open_request) is not None:
            if self._reserve_beside(state, current):
                return
            if self._asked:
                self._await_reply()
            else:
                self._take_up(state, current, left_open)
        elif current.refused is not None:
            self._close(state, current, EndOfRound("budget", current.refused.detail))
        else:
            self._go_on(state, current, self.step_of(current))

    def step_of(self, current: RoundState) -> Step:
        """Return the step of a round, as it was stored."""
        return STEP.validate_json(self.ground.content(current.step.step_sha256))  # type: ignore[no-any-return]  # an adapter of a union

    def _between_rounds(self, state: SessionState) -> None:
        ended = end_of_session(state)
        opened, number = state.opened.event, len(state.rounds) + 1
        if ended is not None:
            event = SessionClosed(session_id=state.session_id, reason=ended.reason, detail=ended.detail)
            self.ground.record(event, seen=state, key=f"session:{state.session_id}:close")
            return
        left = state.tree.left_for(number)
        view = BudgetLeft(
            candidates=left.candidates,
            wall_s=left.wall_ms / 1000,
            device_s=left.device_ms / 1000,
            micro_dollars=left.micro_dollars,
            tokens=left.tokens,
        )
        step = self.author.propose(opened.seed, self._learned.log(state), view)
        stored = canonical(step)
        proposed = StepProposed(
            session_id=state.session_id, round=number, kind=step.kind, step_sha256=sha256(stored), left=view
        )
        self._record(state, proposed, what=f"{number}:step", actor=f"agent:{opened.author}", blobs=(stored,))

    def _go_on(self, state: SessionState, current: RoundState, step: Step) -> None:
        if isinstance(step, Wish) and current.wish is None:
            refused = WishRefused(
                session_id=state.session_id, round=current.number, wish=step.wish, detail=step.detail
            )
            actor = f"agent:{state.opened.event.author}"
            self._record(state, refused, what=f"{current.number}:wish", actor=actor)
            return
        if isinstance(step, Screen | Submit | Ask):
            place = free_place(step, current)
            if place is not None and not self._is_won(current, step):
                self._request(state, current, step, place)
                return
        self._close(state, current, end_of_round(state, current, step, self._learned.of_round(current)))

    def _reserve_beside(self, state: SessionState, current: RoundState) -> bool:
        """Reserve one more request beside those that are open: a candidate for workers, or a prompt of the step.

        Return False if none may be.
        """
        step = self.step_of(current)
        if not isinstance(step, Ask | Submit) or not self._may_begin(state, current, step):
            return False
        place = free_place(step, current)
        if place is None:
            return False
        worst = worst_case(asked_at(step, place), state.opened.event)
        if worst is None or shortage(worst, state.tree.left_for(current.number)):
            return False
        if isinstance(step, Ask) and not self.ground.begins(state.requests + 1):
            return False
        self._request(state, current, step, place)
        return True

    def _may_begin(self, state: SessionState, current: RoundState, step: Ask | Submit) -> bool:
        """Return whether a request may be begun beside the open ones, which must all be this process's prompts."""
        match step:
            case Ask():
                return {one.number for one in current.open_requests} <= self._asked.keys()
            case Submit():
                at_once = state.opened.event.terms.workers
                return len(current.open_requests) < at_once and not self._is_won(current, step)

    def _is_won(self, current: RoundState, step: Step) -> bool:
        """Return whether the step ends at its first right draft, and one of its drafts was right."""
        if not isinstance(step, Submit) or not step.first_right:
            return False
        learned = self._learned.of_round(current)
        judged = [entry for entry in learned if isinstance(entry, Judged)]
        return any(one.passed_gates or one.was_overtaken for one in judged)

    def _request(self, state: SessionState, current: RoundState, step: Screen | Submit | Ask, place: int) -> None:
        """Reserve the worst case of one request and carry it out; if there is too little left, refuse it.

        The answer about a candidate or to a prompt is taken in a later transition: others can be begun beside it.
        """
        opened, number = state.opened.event, state.requests + 1
        asked = asked_at(step, place)
        worst, left = worst_case(asked, opened), state.tree.left_for(current.number)
        if worst is None:
            assert isinstance(step, Ask)
            self._refuse(state, current, step, NOTHING, left, f"the price of model {step.model!r} isn't known")
            return
        short = shortage(worst, left)
        if short:
            self._refuse(state, current, step, worst, left, short)
            return
        started = self.ground.new_run(number) if isinstance(step, Submit) else None
        reserved = BudgetReserved(
            session_id=state.session_id,
            round=current.number,
            request=number,
            purpose=purpose_of(step),
            place=place,
            for_run=started.run_id if started else None,
            worst=worst,
        )
        first: tuple[Event, ...] = (started,) if started else ()
        blobs: tuple[bytes, ...] = ()
        if isinstance(asked, Ask):
            first, blobs = (model_requested(reserved, asked),), (asked.prompt.encode(),)
        if not self._record(state, reserved, *first, what=f"{number}:reserve", blobs=blobs):
            return
        match asked:
            case Submit():
                self.ground.start(reserved, asked.drafts[place])
            case Ask():
                self._asked[number] = reserved
                self.ground.begin_ask(reserved, asked)
            case Screen():
                self._carry_out(reserved, asked)

    def _refuse(
        self,
        state: SessionState,
        current: RoundState,
        step: Screen | Submit | Ask,
        needed: Amounts,
        left: Amounts,
        detail: str,
    ) -> None:
        refused = BudgetRefused(
            session_id=state.session_id,
            round=current.number,
            purpose=purpose_of(step),
            needed=needed,
            left=left,
            detail=detail,
        )
        self._record(state, refused, what=f"{current.number}:refuse")

    def _take_up(self, state: SessionState, current: RoundState, request: RequestState) -> None:
        """Go on with a request that a killed process left open.

        A candidate's run is taken up. What may have been sent or run is settled in full.
        """
        step, reserved = self.step_of(current), request.reserved
        match reserved.purpose:
            case "candidate":
                self._carry_out(reserved, step)
            case "model":
                lost = ModelLost(session_id=state.session_id, round=current.number, request=request.number)
                self._settle(reserved, reserved.worst, lost)
            case "screening":
                self._settle(reserved, reserved.worst)

    def _carry_out(self, reserved: BudgetReserved, step: Step) -> None:
        try:
            match step:
                case Submit():
                    draft = step.drafts[reserved.place]
                    judged = self.ground.judge(reserved, draft, first_right=step.first_right)
                    self._answer(reserved, judged.entry, judged.used, judged=judged)
                case Screen():
                    screened = self.ground.screen(reserved, step)
                    self._answer(reserved, screened.entry, screened.used, *screened.events)
                case Ask() | Wish() | Finished():
                    raise IntegrityError(
                        f"request {reserved.request} is of the step {step.kind}: expected submit or screen"
                    )
        except Interrupted:
            return

    def _await_reply(self) -> None:
        """Record the first answer to a prompt that this process has sent."""
        try:
            number, reply = self.ground.next_reply(self._asked.keys())
        except Interrupted:
            self._asked.clear()
            return
        blobs = (reply.text,) if isinstance(reply.ended, ModelResponded) else ()
        self._settle(self._asked[number], reply.used, reply.ended, blobs=blobs)
        del self._asked[number]

    def _answer(
        self,
        reserved: BudgetReserved,
        entry: LogEntry,
        used: Amounts,
        *beside: Event,
        judged: Judgement | None = None,
    ) -> None:
        """Record what the author learns from a request, and settle it, in one transaction."""
        stored = canonical(entry)
        answered = StepAnswered(
            session_id=reserved.session_id,
            round=reserved.round,
            request=reserved.request,
            entry_sha256=sha256(stored),
            kernel_id=judged.entry.kernel_id if judged else None,
            speedup=judged.speedup if judged else None,
            floor_fraction=judged.floor_fraction if judged else None,
        )
        self._settle(reserved, used, *beside, answered, blobs=(stored,))

    def _settle(self, reserved: BudgetReserved, used: Amounts, *beside: Event, blobs: tuple[bytes, ...] = ()) -> None:
        """Record what a request used, and what came of it, whatever a person recorded meanwhile."""
        recorded = False
        while not recorded:
            state = self.ground.state
            settled = BudgetSettled(
                session_id=state.session_id,
                round=reserved.round,
                request=reserved.request,
                used=used,
                uncovered=state.tree.uncovered(reserved.request, used),
            )
            recorded = self._record(state, *beside, settled, what=f"{reserved.request}:settle", blobs=blobs)

    def _close(self, state: SessionState, current: RoundState, ended: EndOfRound) -> None:
        event = RoundClosed(
            session_id=state.session_id, round=current.number, reason=ended.reason, detail=ended.detail
        )
        self._record(state, event, what=f"{current.number}:round")

    def _record(
        self, state: SessionState, *events: Event, what: str, actor: str = SYSTEM, blobs: tuple[bytes, ...] = ()
    ) -> bool:
        """Record what was decided from a state; return False if the session has gone on since: then decide again."""
        key = f"session:{state.session_id}:{what}"
        return self.ground.record(*events, seen=state, key=key, actor=actor, blobs=blobs)
