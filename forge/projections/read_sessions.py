"""Folds every session of a ledger while it is verified, so that a forged session is found before one is resumed."""

from forge.errors import LedgerCorrupt
from forge.events import Event, KernelPromoted, Recorded
from forge.events.session import StepAnswered
from forge.projections import sessions
from forge.projections.runs import RunsState
from forge.projections.sessions import STREAM, SessionState


class SessionsRead:
    """The states of all sessions after some events of the ledger."""

    def __init__(self) -> None:
        self._states: dict[str, SessionState] = {}

    def take(self, recorded: Recorded[Event], runs: RunsState) -> None:
        """Take one event, after `runs` did; raise LedgerCorrupt if its session or its run contradicts it."""
        if not recorded.stream.startswith(STREAM):
            return
        before = self._states.get(recorded.stream)
        after = sessions.begin(recorded) if before is None else sessions.apply(before, recorded)
        self._states[recorded.stream] = after
        if isinstance(recorded.event, StepAnswered) and recorded.event.kernel_id is not None:
            _require_promoted(recorded.event, after, runs)


def _require_promoted(event: StepAnswered, state: SessionState, runs: RunsState) -> None:
    """Raise LedgerCorrupt unless the run of an answered request promoted the kernel that the answer names."""
    requests = (one for each in state.rounds for one in each.requests)
    for_run = next(one.reserved.for_run for one in requests if one.number == event.request)
    run = runs.runs.get(for_run) if for_run is not None else None
    promoted = run.promotion.event if run is not None and run.promotion is not None else None
    found = promoted.kernel_id if isinstance(promoted, KernelPromoted) else None
    if found != event.kernel_id:
        raise LedgerCorrupt(
            f"request {event.request} of session {event.session_id!r} names kernel {event.kernel_id!r}: "
            f"its run {for_run!r} promoted {found!r}"
        )
