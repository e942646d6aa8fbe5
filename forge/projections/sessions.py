"""Folds the full state of a session: its rounds, their requests, and its budget.

The fold refuses a history in which more was reserved than was granted.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from forge.domain.budget import BudgetTree
from forge.errors import LedgerCorrupt
from forge.events import Event, Recorded
from forge.events.screen import TrialsScreened
from forge.events.session import (
    BudgetGranted,
    BudgetRefused,
    BudgetReserved,
    BudgetSettled,
    ModelFailed,
    ModelLost,
    ModelRequested,
    ModelResponded,
    RoundClosed,
    SessionClosed,
    SessionOpened,
    StepAnswered,
    StepProposed,
    WishRefused,
)
from forge.projections.fold import holds

STREAM = "session:"
"""Beginning of the name of a session's stream."""

ModelEnd = ModelResponded | ModelFailed | ModelLost


@dataclass(frozen=True, slots=True)
class RequestState:
    """One request of a round: its reservation, and what became of it."""

    reserved: BudgetReserved
    asked: ModelRequested | None = None
    ended: ModelEnd | None = None
    answered: StepAnswered | None = None
    settled: BudgetSettled | None = None

    @property
    def number(self) -> int:
        """Return its number in the session."""
        return self.reserved.request

    @property
    def gave_an_answer(self) -> bool:
        """Return whether the author's log has an entry for it; a request that was lost has none."""
        return self.answered is not None or isinstance(self.ended, ModelResponded | ModelFailed)


@dataclass(frozen=True, slots=True)
class RoundState:
    """One round: the author's step, its requests, and its end."""

    step: StepProposed
    requests: tuple[RequestState, ...] = ()
    refused: BudgetRefused | None = None
    wish: WishRefused | None = None
    closed: RoundClosed | None = None

    @property
    def number(self) -> int:
        """Return its number in the session."""
        return self.step.round

    @property
    def open_requests(self) -> tuple[RequestState, ...]:
        """Return the requests that aren't settled, in order."""
        return tuple(one for one in self.requests if one.settled is None)

    @property
    def open_request(self) -> RequestState | None:
        """Return the first request that isn't settled; None if all are."""
        return next(iter(self.open_requests), None)

    def answer_of(self, place: int) -> RequestState | None:
        """Return the request that gave the answer for a draft of the step; None if there is none yet."""
        return next((one for one in self.requests if one.reserved.place == place and one.gave_an_answer), None)


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of one session after some events of its stream."""

    opened: Recorded[SessionOpened]
    rounds: tuple[RoundState, ...] = ()
    tree: BudgetTree = field(default_factory=BudgetTree)
    closed: Recorded[SessionClosed] | None = None
    events: int = 1
    """Number of events in its stream."""

    @property
    def session_id(self) -> str:
        """Return its id."""
        return self.opened.event.session_id

    @property
    def current(self) -> RoundState | None:
        """Return the round that isn't closed; None if there is none."""
        return self.rounds[-1] if self.rounds and self.rounds[-1].closed is None else None

    @property
    def requests(self) -> int:
        """Return the number of requests so far."""
        return sum(len(one.requests) for one in self.rounds)

    def answers(self) -> Iterator[StepAnswered]:
        """Yield the answers about candidates and screenings, in order."""
        for one in self.rounds:
            yield from (request.answered for request in one.requests if request.answered is not None)


def begin(recorded: Recorded[Event] | None) -> SessionState:
    """Return the state after a session's first event; raise LedgerCorrupt for another event."""
    if not holds(recorded, SessionOpened):
        raise LedgerCorrupt("a session has events and was never opened", hint="forge ledger verify")
    opened = recorded.event
    return SessionState(opened=recorded, tree=BudgetTree(round_limit=opened.round_budget).grant(opened.budget))


def fold(events: Iterable[Recorded[Event]]) -> SessionState:
    """Return a session's state after the events of its stream. Raises LedgerCorrupt."""
    coming = iter(events)
    state = begin(next(coming, None))
    for recorded in coming:
        state = apply(state, recorded)
    return state


def apply(state: SessionState, recorded: Recorded[Event]) -> SessionState:
    """Return the state after one more event; `state` isn't changed. Raises LedgerCorrupt."""
    try:
        return replace(_changed(state, recorded), events=state.events + 1)
    except (KeyError, IndexError, ValueError) as error:
        raise LedgerCorrupt(
            f"event {recorded.seq} ({recorded.event.TYPE}) contradicts session {state.session_id!r}: {error}",
            hint="forge ledger verify",
        ) from error


def _changed(state: SessionState, recorded: Recorded[Event]) -> SessionState:
    """Return the state as an event changes it; raise ValueError if the event contradicts it."""
    match recorded.event:
        case StepProposed() as step:
            if state.current is not None or step.round != len(state.rounds) + 1:
                raise ValueError(f"round {step.round} begins after round {len(state.rounds)}")
            return replace(state, rounds=(*state.rounds, RoundState(step=step)))
        case StepAnswered() as answer:
            return _answered(state, answer)
        case RoundClosed() as end:
            if state.current is not None and state.current.open_request is not None:
                raise ValueError(f"round {end.round} is closed before request {state.current.open_request.number}")
            return _in_round(state, end.round, lambda one: replace(one, closed=end))
        case ModelRequested() as asked:
            return _in_request(state, asked.round, asked.request, asked=asked)
        case ModelResponded() | ModelFailed() | ModelLost() as ended:
            return _in_request(state, ended.round, ended.request, ended=ended)
        case TrialsScreened():
            return state
        case _:
            return _with_budget(state, recorded)


def _with_budget(state: SessionState, recorded: Recorded[Event]) -> SessionState:
    """Return the state after an event about its budget, or after its end."""
    match recorded.event:
        case BudgetGranted() as grant:
            return replace(state, tree=state.tree.grant(grant.more))
        case BudgetReserved() as reserved:
            return _reserved(state, reserved)
        case BudgetSettled() as settled:
            return _settled(state, settled)
        case BudgetRefused() as refused:
            return _in_round(state, refused.round, lambda one: replace(one, refused=refused))
        case WishRefused(round=None):
            return state
        case WishRefused(round=int(number)) as wish:
            return _in_round(state, number, lambda one: replace(one, wish=wish))
        case _ if holds(recorded, SessionClosed):
            if state.closed is not None:
                raise ValueError("it is closed a second time")
            return replace(state, closed=recorded)
        case event:
            raise LedgerCorrupt(
                f"event {recorded.seq} in a session's stream is {event.TYPE}: expected a session's event"
            )


def _reserved(state: SessionState, event: BudgetReserved) -> SessionState:
    if event.request != state.requests + 1:
        raise ValueError(f"request {event.request} is reserved after request {state.requests}")
    tree = state.tree.reserve(event.round, event.request, event.worst)
    return replace(
        _in_round(state, event.round, lambda one: replace(one, requests=(*one.requests, RequestState(event)))),
        tree=tree,
    )


def _settled(state: SessionState, event: BudgetSettled) -> SessionState:
    if any(one.number == event.request and one.settled for each in state.rounds for one in each.requests):
        raise ValueError(f"request {event.request} is settled a second time")
    if state.tree.uncovered(event.request, event.used) != event.uncovered:
        raise ValueError(f"request {event.request} says {event.uncovered} isn't covered")
    tree = state.tree.settle(event.request, event.used)
    return replace(_in_request(state, event.round, event.request, settled=event), tree=tree)


def _answered(state: SessionState, event: StepAnswered) -> SessionState:
    if any(one.number == event.request and one.gave_an_answer for each in state.rounds for one in each.requests):
        raise ValueError(f"request {event.request} is answered a second time")
    return _in_request(state, event.round, event.request, answered=event)


def _in_round(state: SessionState, number: int, change: Callable[[RoundState], RoundState]) -> SessionState:
    rounds = list(state.rounds)
    if not 1 <= number <= len(rounds):
        raise ValueError(f"round {number} never began")
    if rounds[number - 1].closed is not None:
        raise ValueError(f"round {number} is closed already")
    rounds[number - 1] = change(rounds[number - 1])
    return replace(state, rounds=tuple(rounds))


def _in_request(state: SessionState, number: int, request: int, **found: object) -> SessionState:
    def change(one: RoundState) -> RoundState:
        if request not in {each.number for each in one.requests}:
            raise ValueError(f"request {request} was never reserved in round {number}")
        requests = tuple(replace(each, **found) if each.number == request else each for each in one.requests)  # type: ignore[arg-type]  # named fields of the class
        return replace(one, requests=requests)

    return _in_round(state, number, change)
