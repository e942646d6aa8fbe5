"""Says which caller may look into which run, and which may change something."""

from forge.app.access.tokens import Caller
from forge.app.desk.refused_calls import NotAllowed, NotShown
from forge.app.runs.states import ENDS
from forge.errors import TokenRefused
from forge.projections.runs import RunState

DECIDED = ENDS | {"aborted"}
"""States of a run that are final: what is in it is published then."""


def owns(caller: Caller, run: RunState) -> bool:
    """Return whether the caller submitted a run's candidate, or opened the run to do so."""
    if caller.scope == "reader":
        return False
    by = run.submitted or run.prompt or run.plan
    return by is not None and by.actor == caller.actor


def may_look_into(caller: Caller, run: RunState) -> bool:
    """Return whether the caller may see a run's files, logs and counterexample: its own, or if the run is decided."""
    return run.state in DECIDED or caller.scope == "operator" or owns(caller, run)


def require_look_into(caller: Caller, run: RunState) -> None:
    """Raise NotShown unless the caller may look into a run."""
    if not may_look_into(caller, run):
        raise NotShown(
            f"run {run.run_id!r} shows nothing more to you: expected a run that is decided, or one of your own",
            caller=caller,
            hint=f"forge run show {run.run_id}",
        )


def require_writer(caller: Caller) -> None:
    """Raise TokenRefused unless the caller may submit candidates."""
    if caller.scope == "reader":
        raise TokenRefused(
            "no token: expected one of an author or an operator, as Authorization: Bearer TOKEN",
            hint="forge token add NAME --scope author",
        )


def require_own(caller: Caller, run: RunState) -> None:
    """Raise NotAllowed unless a run is the caller's own; an operator may carry on any run."""
    require_writer(caller)
    if caller.scope != "operator" and not owns(caller, run):
        raise NotAllowed(
            f"run {run.run_id!r} isn't of {caller.actor!r}: an author carries on its own runs only", caller=caller
        )


def require_operator(caller: Caller) -> None:
    """Raise NotAllowed unless the caller is an operator."""
    require_writer(caller)
    if caller.scope != "operator":
        raise NotAllowed(f"{caller.actor!r} is an author: expected the token of an operator", caller=caller)
