"""The rules that end rounds and sessions: pure functions of what was recorded, each with a reason code."""

from collections.abc import Sequence
from typing import NamedTuple

from forge.domain.authoring import Judged, LogEntry, Step
from forge.domain.evidence import Interval
from forge.domain.policy import CONTROL_KIND
from forge.domain.session import RoundEnd, SessionEnd
from forge.domain.verdict import Rejected
from forge.projections.sessions import RoundState, SessionState

AS_FAST = Interval(ratio=1, low=1, high=1)
"""Interval of the baseline against itself: the first gain of a session is one over the baseline."""


class EndOfRound(NamedTuple):
    """Why a round ends."""

    reason: RoundEnd
    detail: str


class EndOfSession(NamedTuple):
    """Why a session ends."""

    reason: SessionEnd
    detail: str


def end_of_round(state: SessionState, current: RoundState, step: Step, entries: Sequence[LogEntry]) -> EndOfRound:
    """Say why a round ends whose step was carried out in full; `entries` are what it added to the author's log."""
    match step.kind:
        case "finished":
            return EndOfRound("finished", f"{step.reason}: {step.detail}")
        case "wish":
            return EndOfRound("wish_refused", f"{step.wish} isn't an author's to decide")
        case "ask":
            return EndOfRound("answered", f"{step.model} was asked")
        case "screen":
            return EndOfRound("screened", f"{len(step.drafts)} drafts were screened")
        case "submit":
            return _end_of_submissions(state, current, entries)


def _end_of_submissions(state: SessionState, current: RoundState, entries: Sequence[LogEntry]) -> EndOfRound:
    found = [one.answered for one in current.requests if one.answered is not None]
    promoted = [one for one in found if one.kernel_id is not None]
    if promoted:
        return EndOfRound("gain", f"{promoted[-1].kernel_id} was promoted")
    best = best_before(state, current.number)
    measured = [one.speedup for one in found if one.speedup is not None]
    gained = [one for one in measured if one.low > best.high]
    if gained:
        most = max(gained, key=lambda one: one.low)
        return EndOfRound("gain", f"{_said(most)}, beyond the best so far, {_said(best)}")
    verdicts = [one.verdict for one in entries if isinstance(one, Judged)]
    if not measured and verdicts and all(isinstance(one, Rejected) for one in verdicts):
        return EndOfRound("refused", f"{len(verdicts)} of {len(verdicts)} candidates were refused")
    return EndOfRound("no_gain", f"nothing beyond the best so far, {_said(best)}")


def best_before(state: SessionState, number: int) -> Interval:
    """Return the interval of the fastest candidate of the rounds before this one; the baseline's if there is none."""
    earlier = (one for one in state.answers() if one.round < number)
    return max((one.speedup for one in earlier if one.speedup), key=lambda one: one.ratio, default=AS_FAST)


def _said(found: Interval) -> str:
    return f"{found.ratio:.3f}x over {CONTROL_KIND} ({found.low:.3f} to {found.high:.3f})"


def end_of_session(state: SessionState) -> EndOfSession | None:
    """Say why a session ends after its last closed round; None: it goes on."""
    closed = [one.closed for one in state.rounds if one.closed is not None]
    if not closed:
        return None
    terms, last = state.opened.event.terms, closed[-1]
    if last.reason == "budget":
        return EndOfSession("budget", last.detail)
    if last.reason == "finished":
        return EndOfSession("nothing_left", last.detail)
    for one in state.answers():
        if one.kernel_id is not None and one.floor_fraction is not None and one.floor_fraction >= terms.floor_share:
            reached = f"{one.kernel_id} reaches {one.floor_fraction:.0%} of the floor"
            return EndOfSession("near_floor", f"{reached}, and {terms.floor_share:.0%} is enough")
    judged = [one.reason for one in closed if one.reason in ("gain", "no_gain", "refused")]
    if _streak(judged, ("refused",)) >= terms.refused_rounds:
        return EndOfSession("divergence", f"every candidate of {terms.refused_rounds} rounds in a row was refused")
    if _streak(judged, ("refused", "no_gain")) >= terms.rounds_without_gain:
        return EndOfSession("no_gain", f"{terms.rounds_without_gain} rounds in a row without a gain")
    if len(closed) >= terms.rounds:
        return EndOfSession("rounds", f"{len(closed)} rounds, the most that were allowed")
    return None


def _streak(reasons: Sequence[RoundEnd], counted: tuple[RoundEnd, ...]) -> int:
    """Return how many of the last reasons are among those counted."""
    length = 0
    for reason in reversed(reasons):
        if reason not in counted:
            break
        length += 1
    return length
