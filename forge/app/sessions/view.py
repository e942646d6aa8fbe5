"""Says what happens in a session, event by event, as data for a terminal and for JSON lines."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from forge.domain.authoring import OUTSIDE, FailedTrial, Judged, Missed, Screened, TimedTrial
from forge.domain.budget import Amounts
from forge.domain.digest import Digest
from forge.domain.evidence import Interval
from forge.events import Event, Recorded
from forge.events.session import (
    BudgetGranted,
    BudgetRefused,
    BudgetReserved,
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
from forge.pipeline.sessions.learned import ENTRY
from forge.pipeline.sessions.stop import best_before
from forge.projections.sessions import SessionState

if TYPE_CHECKING:
    from forge.app.sessions.ledger_ground import Watch

Data = dict[str, object]


def telling(content: Callable[[Digest], bytes], show: Callable[[Data], None]) -> "Watch":
    """Return what tells `show` each event of a session that says something new."""

    def watch(recorded: Recorded[Event], state: SessionState) -> None:
        event = recorded.event
        line = event_line(recorded, state, content(event.entry_sha256) if isinstance(event, StepAnswered) else None)
        if line is not None:
            show(line)

    return watch


def event_line(recorded: Recorded[Event], state: SessionState, entry: bytes | None) -> Data | None:
    """Return what an event says to a person, with best and budget after it; None if it says nothing new.

    `entry` is what the author learns from a StepAnswered.
    """
    said = _said(recorded.event, entry)
    if said is None:
        return None
    best = best_so_far(state)
    left = state.tree.session.left
    return {
        "seq": recorded.seq,
        "event": recorded.event.TYPE,
        "round": getattr(recorded.event, "round", None),
        "said": said,
        "best": None if best is None else best.model_dump(mode="json"),
        "left": left.model_dump(mode="json"),
    }


def best_so_far(state: SessionState) -> Interval | None:
    """Return the speedup of the fastest candidate over the task's first baseline; None if none was measured."""
    measured = [one for one in state.answers() if one.speedup is not None]
    return best_before(state, len(state.rounds) + 1) if measured else None


def _said(event: Event, entry: bytes | None) -> str | None:
    match event:
        case SessionOpened():
            return f"{event.author} works on {event.task_id} with {event.budget}"
        case StepProposed():
            return f"proposes to {event.kind}"
        case StepAnswered():
            return _answer(entry)
        case RoundClosed():
            return f"ends with {event.reason}: {event.detail}"
        case SessionClosed():
            return f"closed: {event.reason}: {event.detail}"
        case ModelRequested() | ModelResponded() | ModelFailed() | ModelLost():
            return _of_model(event)
        case _:
            return _of_budget(event)


def _of_model(event: ModelRequested | ModelResponded | ModelFailed | ModelLost) -> str:
    match event:
        case ModelRequested() if event.model in OUTSIDE:
            return f"waits for the next submission of the {event.model}"
        case ModelRequested():
            return f"asks {event.model} for up to {event.most_tokens} tokens"
        case ModelResponded():
            return f"answered in {event.answer_tokens} tokens" if event.answer_tokens else "answered"
        case ModelFailed():
            return f"no answer: {event.cause}: {event.detail}"
        case ModelLost():
            return f"request {event.request} was lost with its process; settled in full"


def _of_budget(event: Event) -> str | None:
    match event:
        case BudgetReserved() if event.for_run is not None:
            return f"{event.purpose} {event.place + 1}: {event.for_run}"
        case BudgetRefused():
            return f"refused: {event.detail}"
        case BudgetGranted():
            return f"granted {event.more}: {event.reason}"
        case WishRefused():
            return f"refused a wish: {event.wish}: {event.detail}"
        case _:
            return None


def _answer(entry: bytes | None) -> str:
    found = None if entry is None else ENTRY.validate_json(entry)
    if isinstance(found, Screened):
        return _screened(found)
    if isinstance(found, Missed):
        return f"missed: {found.reason.message}"
    if not isinstance(found, Judged):
        return "answered" if found is None else f"{found.kind}"
    reason = getattr(found.verdict, "reason", None)
    why = f" {reason.code}: {reason.message}" if reason else f" as {found.kernel_id}"
    measured = f", {found.speedup.ratio:.3f}x" if found.speedup else ""
    simulated = " (SIMULATED)" if found.feedback is not None and found.feedback.simulated else ""
    return f"{found.verdict.verdict}{simulated}{why}{measured}"


def _screened(found: Screened) -> str:
    """Say how many drafts were timed, the fastest of them, and the first reason of a failure."""
    if found.reference_failed is not None:
        return f"the reference failed: {found.reference_failed.code}: {found.reference_failed.message}"
    timed = [one.result.speedup.ratio for one in found.trials if isinstance(one.result, TimedTrial)]
    failed = [one.result for one in found.trials if isinstance(one.result, FailedTrial)]
    fastest = f", the fastest {max(timed):.3f}x" if timed else ""
    why = f"; {len(failed)} failed, {failed[0].stage}: {failed[0].reason.message}" if failed else ""
    return f"{'a final screening' if found.final else 'screened'}: {len(timed)} timed{fastest}{why}"


def summary(state: SessionState) -> Data:
    """Return where a session stands, as data for a table or for JSON."""
    opened, closed = state.opened.event, state.closed
    best = best_so_far(state)
    return {
        "session_id": state.session_id,
        "task_id": opened.task_id,
        "author": opened.author,
        "opened_at": state.opened.recorded_at,
        "state": "open" if closed is None else closed.event.reason,
        "detail": None if closed is None else closed.event.detail,
        "rounds": len(state.rounds),
        "kernels": [one.kernel_id for one in state.answers() if one.kernel_id is not None],
        "best": None if best is None else best.model_dump(mode="json"),
        "used": used(state).model_dump(mode="json"),
        "left": state.tree.session.left.model_dump(mode="json"),
    }


def used(state: SessionState) -> Amounts:
    """Return what was used, with the reservations of requests that were never settled and what nothing covered."""
    uncovered = (
        request.settled.uncovered for one in state.rounds for request in one.requests if request.settled is not None
    )
    return sum(uncovered, state.tree.session.settled + state.tree.session.reserved)
