"""Decides what a caller sees of a session: no run's speed before its decision, and no screening before its end."""

from dataclasses import replace

import orjson

from forge.app.access.tokens import Caller
from forge.app.desk.permits import DECIDED
from forge.app.sessions.view import Data, summary
from forge.app.workspace import Workspace
from forge.events import Event, TrialsScreened
from forge.events.session import BudgetReserved, RoundClosed, SessionClosed, StepAnswered
from forge.projections.fold import holds
from forge.projections.sessions import RequestState, SessionState

Telling = StepAnswered | RoundClosed | SessionClosed | TrialsScreened
"""Events of a session whose payload may tell how fast something is."""
UNDECIDED_RUNS = (
    "SELECT run_id FROM runs WHERE run_id IN (SELECT value FROM json_each(?)) AND state NOT IN ({states})"
)
"""Query for the runs of a list that aren't decided."""
WITHHELD_DETAIL = "withheld until the session's runs are decided"
"""Text that stands for the reason of an end, which may name a speed."""


def may_be_told(workspace: Workspace, caller: Caller, event: Event) -> bool:
    """Return whether a caller may read an event's payload, as far as sessions have a say in it.

    No token belongs to an author of sessions, so that before a decision operators alone are told.
    """
    if not isinstance(event, Telling) or caller.scope == "operator":
        return True
    stream = event.stream()
    if isinstance(event, TrialsScreened):
        closed = next(workspace.ledger.read(stream=stream, types=(SessionClosed.TYPE,), limit=1), None)
        return closed is not None
    reserved = [
        one.event
        for one in workspace.ledger.read(stream=stream, types=(BudgetReserved.TYPE,))
        if holds(one, BudgetReserved) and _is_about(event, one.event)
    ]
    return not undecided_runs(workspace, [one.for_run for one in reserved if one.for_run is not None])


def told_summary(workspace: Workspace, caller: Caller, state: SessionState) -> Data:
    """Return where a session stands; the best speedup is that of decided runs for a caller who isn't an operator."""
    if caller.scope == "operator":
        return summary(state)
    named = [one.reserved.for_run for each in state.rounds for one in each.requests]
    hidden = undecided_runs(workspace, [one for one in named if one is not None])
    told = summary(_without_figures(state, hidden))
    return told if not hidden or state.closed is None else told | {"detail": WITHHELD_DETAIL}


def undecided_runs(workspace: Workspace, run_ids: list[str]) -> frozenset[str]:
    """Return those of the runs that aren't decided."""
    if not run_ids:
        return frozenset()
    states = ", ".join("?" * len(DECIDED))
    asked = UNDECIDED_RUNS.format(states=states)
    with workspace.publication.tables() as history:
        listed = orjson.dumps(run_ids).decode()
        return frozenset(str(one) for (one,) in history.execute(asked, (listed, *sorted(DECIDED))))


def _is_about(event: StepAnswered | RoundClosed | SessionClosed, reserved: BudgetReserved) -> bool:
    """Return whether what an event tells may come from what was reserved for."""
    match event:
        case StepAnswered():
            return reserved.request == event.request
        case RoundClosed():  # it names the best speed of the earlier rounds, too
            return reserved.round <= event.round
        case SessionClosed():
            return True


def _without_figures(state: SessionState, hidden: frozenset[str]) -> SessionState:
    """Return a session in which the answers about these runs have no figure."""

    def told(one: RequestState) -> RequestState:
        if one.answered is None or one.reserved.for_run not in hidden:
            return one
        return replace(one, answered=one.answered.model_copy(update={"speedup": None, "floor_fraction": None}))

    rounds = (replace(each, requests=tuple(map(told, each.requests))) for each in state.rounds)
    return replace(state, rounds=tuple(rounds))
